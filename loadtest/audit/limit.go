package audit

import "fmt"

// limit checks what was allowed per user and window, over all keys that were said to
// count for them: a limiter that counts one window in two keys allows twice the rate,
// with two counters that are right.
//
// Without ambiguity, allowed = min(rate, acknowledged). A request whose reply was lost
// may have taken one of the allowed places, so a of them lower the bound by a; they
// never raise it above the rate.
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
		i = j
		if sum.Acknowledged == 0 {
			continue
		}
		groups++
		if r.within(c, sum) {
			exact++
		}
	}
	c.Detail = fmt.Sprintf("%d users and windows: allowed %d, denied %d, rate %d; %d exact",
		groups, r.Account.Tally.Allowed, r.Account.Tally.Acknowledged-r.Account.Tally.Allowed, r.Promise.Rate, exact)
}

// within checks one user and window, and says whether its number is exact.
func (r *reconciliation) within(c *Check, sum row) bool {
	most := min(r.Promise.Rate, sum.Acknowledged)
	ambiguous := sum.Ambiguous + r.Account.Keyless[sum.User]
	least := max(0, most-ambiguous)
	switch {
	case sum.Allowed > most || sum.Allowed < least && ambiguous == 0:
		c.fail("%v: allowed %d, should be %d (rate %d, told %d)", sum, sum.Allowed, most, r.Promise.Rate, sum.Acknowledged)
	case sum.Allowed < least:
		c.fail("%v: allowed %d, should be %d to %d (rate %d, told %d%s)", sum, sum.Allowed, least, most,
			r.Promise.Rate, sum.Acknowledged, plus(ambiguous))
	}
	return sum.Allowed == most
}

func (w row) sameWindow(o row) bool {
	return w.Known && o.Known && w.User == o.User && w.Window == o.Window
}
