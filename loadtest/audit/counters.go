package audit

import "fmt"

// counters checks acknowledged <= stored <= acknowledged + ambiguous of each counter. More than
// that is our own fault, whatever happened to the cluster. Less is explained or not: see
// [reconciliation.loss].
//
// A lost reply whose key nobody knows may be in any one counter of its user. Such
// replies make a budget per user, out of which what is above the bound is paid.
func (r *reconciliation) counters(c *Check) {
	budget := make(map[string]int64, len(r.Account.Keyless))
	for user, n := range r.Account.Keyless {
		budget[user] = n
	}
	found := 0
	for _, w := range r.rows {
		if w.state == read {
			found++
		}
		r.counter(c, w, budget)
	}
	for _, x := range r.Account.Clashes {
		if x.User != x.OtherUser {
			c.fail("key %q counts for two users: %q and %q", x.Key, x.User, x.OtherUser)
		} else {
			c.fail("user %q: key %q counts for two windows: %d and %d", x.User, x.Key, x.Window, x.OtherWindow)
		}
	}
	c.More += r.Account.Clashed - int64(len(r.Account.Clashes))
	t := r.Account.Tally
	if t.Ended() != r.Sent {
		c.fail("%d requests were started, but %d ended", r.Sent, t.Ended())
	}
	if t.Acknowledged == 0 {
		c.fail("no request was acknowledged, so nothing is proven")
	}
	c.Detail = fmt.Sprintf("%d counters: stored %d, acknowledged %d, ambiguous %d",
		found, r.totals().Stored, t.Acknowledged, t.Ambiguous)
	for _, l := range r.losses {
		c.Detail += "; " + l.String()
	}
}

func (r *reconciliation) counter(c *Check, w row, budget map[string]int64) {
	switch w.state {
	case expired:
		c.fail("%v: told %d%s, but the counter had expired before it could be read", w, w.Acknowledged, plus(w.Ambiguous))
		return
	case unread:
		c.fail("%v: told %d%s, but the counter cannot be read: %s", w, w.Acknowledged, plus(w.Ambiguous), w.why)
		return
	}
	if w.stored < w.Acknowledged {
		r.loss(c, w)
		return
	}
	over := w.stored - w.Acknowledged - w.Ambiguous
	if over > 0 && over <= budget[w.User] {
		budget[w.User] -= over
	} else if over > 0 || w.untold {
		c.fail("%v: stored %d, told %d%s", w, w.stored, w.Acknowledged, plus(w.Ambiguous+budget[w.User]))
	}
}

// plus shows the width of a bound.
func plus(ambiguous int64) string {
	if ambiguous == 0 {
		return ""
	}
	return fmt.Sprintf(" (+%d ambiguous)", ambiguous)
}
