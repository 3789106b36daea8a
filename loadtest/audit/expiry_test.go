package audit_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/slotlimit/slotlimit/keys"
	"github.com/slotlimit/slotlimit/loadtest/audit"
)

// MIGRATE sends a key's TTL as a length of time, so what moved expires later by the time that it was
// on its way. What did not move may not, and nothing may by more than that.
func TestExpiryOfWhatMoved(t *testing.T) {
	for _, test := range []struct {
		name  string
		moved bool
		late  int64 // ms
		ok    bool
	}{
		{"moved, and late", true, 47, true},
		{"moved, and far too late", true, 5001, false},
		{"late without a move", false, 47, false},
	} {
		f := forge(50, 150)
		counter := f.counter(0)
		counter.Expires += test.late
		slot := keys.Slot(counter.Key)
		r := slots(slot, slot)
		if !test.moved {
			r = slots((slot+1)%keys.Slots, (slot+1)%keys.Slots)
		}
		f.happen(audit.Event{From: at(window, 1), To: at(window, 2), Kind: audit.SlotsMoved, Node: "b:1", Was: "a:1",
			Slots: []audit.SlotRange{r}, Graceful: true})
		late := func(line string) bool { return strings.HasPrefix(line, "expiry: ") }
		if got := !slices.ContainsFunc(failed(f.verdict()), late); got != test.ok {
			t.Errorf("%s: expiry holds: %v, should be %v", test.name, got, test.ok)
		}
	}
}
