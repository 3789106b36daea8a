package audit

import (
	"fmt"
	"math"
	"time"
)

// expiry checks that each counter that was found expires, by the clock of its node, no
// sooner than its window's end, or it could be counted anew in the window, and no
// later than the grace after it, or steady traffic could keep it alive for ever.
//
// A key that moves to another node may expire later: MIGRATE sends how long it has to live, and the
// receiver counts that from when it arrives.
func (r *reconciliation) expiry(c *Check) {
	grace := r.Promise.Grace.Milliseconds()
	checked, late := 0, 0
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
		case after > grace && after <= grace+r.moves(w)*transit:
			late++
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
	if late > 0 {
		c.Detail += fmt.Sprintf("; %d of them late because they moved", late)
	}
}

// transit is how long a key may be on its way from one node to another, in ms. A busy machine
// takes 50, and a receiver that pauses, as long as that: MIGRATE's own time limit bounds it.
const transit = 5000

// moves returns how often a row's key has moved with its slot.
func (r *reconciliation) moves(w row) (n int64) {
	for _, e := range r.events {
		if e.Kind == SlotsMoved && owner([]Shard{{Slots: e.Slots}}, w.slot) >= 0 {
			n++
		}
	}
	if w.found.Arriving {
		n++
	}
	return n
}

// ms shows milliseconds as a duration.
func ms(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
