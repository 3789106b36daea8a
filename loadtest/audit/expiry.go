package audit

import (
	"fmt"
	"math"
	"time"
)

// expiry checks that each counter that was found expires, by the clock of its node, no
// sooner than its window's end, or it could be counted anew in the window, and no
// later than the grace after it, or steady traffic could keep it alive for ever.
func (r *reconciliation) expiry(c *Check) {
	grace := r.Promise.Grace.Milliseconds()
	checked := 0
	first, last := int64(math.MaxInt64), int64(math.MinInt64)
	for _, w := range r.rows {
		if w.found == nil || w.found.Unread != "" {
			continue
		}
		checked++
		if w.found.Expires == 0 {
			c.fail("%v: no TTL, should expire %v after its window's end at the latest", w, r.Promise.Grace)
			continue
		}
		if !w.Known {
			continue
		}
		after := w.found.Expires - r.Promise.windowEnd(w.Window)
		first, last = min(first, after), max(last, after)
		ttl, most := w.found.Expires-w.found.at, r.Promise.windowEnd(w.Window)+grace-w.found.at
		switch {
		case after > grace:
			c.fail("%v: TTL %v, should be at most %v: expires %v after the window's end", w, ms(ttl), ms(most), ms(after))
		case after < 0:
			c.fail("%v: TTL %v, should be at least %v: expires %v before the window's end", w, ms(ttl), ms(most-grace), ms(-after))
		}
	}
	c.Detail = fmt.Sprintf("%d counters", checked)
	if first <= last {
		c.Detail += fmt.Sprintf(" expire %v to %v after their window's end, grace %v", ms(first), ms(last), r.Promise.Grace)
	}
}

// ms shows milliseconds as a duration.
func ms(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
