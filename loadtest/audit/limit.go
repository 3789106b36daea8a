package audit

import "fmt"

// limit checks what was allowed per user and window, over all keys that were said to
// count for them: a limiter that counts one window in two keys allows twice the rate,
// with two counters that are right.
//
// Without ambiguity, allowed = min(rate, acknowledged). Requests whose replies were lost
// may have taken allowed places, one each, so a of them leave at least rate - a to the
// others; they never raise the bound above the rate.
//
// A counter that lost counts lets as many pass again: each that is lost gives back one place. So
// allowed <= rate + lost, where an event explains a loss; with ambiguity, of which nobody knows
// how much was counted and then lost, lost is at most acknowledged + ambiguous - stored.
func (r *reconciliation) limit(c *Check) {
	groups, exact := 0, 0
	for i := 0; i < len(r.rows); {
		sum := r.rows[i]
		j := i + 1
		for ; j < len(r.rows) && sum.sameWindow(r.rows[j]); j++ {
			sum.Acknowledged += r.rows[j].Acknowledged
			sum.Allowed += r.rows[j].Allowed
			sum.Ambiguous += r.rows[j].Ambiguous
		}
		rows := r.rows[i:j]
		i = j
		if sum.Acknowledged == 0 {
			continue
		}
		groups++
		if r.within(c, sum, rows) {
			exact++
		}
	}
	c.Detail = fmt.Sprintf("%d users and windows: allowed %d, denied %d, rate %d; %d exact",
		groups, r.Account.Tally.Allowed, r.Account.Tally.Acknowledged-r.Account.Tally.Allowed, r.Promise.Rate, exact)
}

// within checks one user and window, which the rows are for, and says whether its number is exact.
func (r *reconciliation) within(c *Check, sum row, rows []row) bool {
	exact := min(r.Promise.Rate, sum.Acknowledged)
	ambiguous := sum.Ambiguous + r.Account.Keyless[sum.User]
	least, most := max(0, min(sum.Acknowledged, r.Promise.Rate-ambiguous)), exact
	if sum.Allowed > most {
		most = min(sum.Acknowledged, r.Promise.Rate+r.lostAtMost(rows))
	}
	switch {
	case sum.Allowed > most && most > exact:
		c.fail("%v: allowed %d, should be at most %d (rate %d, told %d%s, lost at most %d)", sum, sum.Allowed, most,
			r.Promise.Rate, sum.Acknowledged, plus(ambiguous), most-r.Promise.Rate)
	case sum.Allowed > most || sum.Allowed < least && least == exact:
		c.fail("%v: allowed %d, should be %d (rate %d, told %d%s)", sum, sum.Allowed, exact, r.Promise.Rate, sum.Acknowledged, plus(ambiguous))
	case sum.Allowed < least:
		c.fail("%v: allowed %d, should be %d to %d (rate %d, told %d%s)", sum, sum.Allowed, least, exact,
			r.Promise.Rate, sum.Acknowledged, plus(ambiguous))
	}
	return sum.Allowed == exact
}

// lostAtMost returns how many counts of one user and window may have been lost by events. What no
// event can have taken was not lost, and raises nothing.
func (r *reconciliation) lostAtMost(rows []row) (lost int64) {
	hit := false
	for _, w := range rows {
		if w.known() && len(r.takers(w)) > 0 {
			hit = true
			lost += max(0, w.Acknowledged+w.Ambiguous-w.stored)
		}
	}
	if hit {
		lost += r.Account.Keyless[rows[0].User]
	}
	return lost
}

func (w row) sameWindow(o row) bool {
	return w.Known && o.Known && w.User == o.User && w.Window == o.Window
}
