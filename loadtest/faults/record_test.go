package faults_test

import (
	"slices"
	"testing"
	"time"

	"github.com/slotlimit/slotlimit/loadtest/faults"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// at is so many milliseconds after the load's start.
func at(ms int) time.Time { return epoch.Add(time.Duration(ms) * time.Millisecond) }

// two is a record of two shards, "a" with the slots under 100 and "b" with the other hundred.
func two() *faults.Record {
	return faults.NewRecord(at(0), []faults.Shard{
		{Name: "a", Slots: []faults.SlotRange{{First: 0, Last: 49}, {First: 50, Last: 99}}},
		{Name: "b", Slots: []faults.SlotRange{{First: 100, Last: 199}}},
	})
}

func call(slot, start, end int, class faults.Class) faults.Outcome {
	return faults.Outcome{Slot: slot, Start: at(start), End: at(end), Class: class}
}

func TestGaps(t *testing.T) {
	for _, test := range []struct {
		name      string
		ends      []int // of decisions
		closed    int
		gap, from int
	}{
		{"no decision at all", nil, 700, 700, 0},
		{"before the first", []int{500, 600}, 700, 500, 0},
		{"between two", []int{100, 500, 600}, 700, 400, 100},
		{"after the last", []int{100, 200}, 700, 500, 200},
		{"told late, and no gap", []int{100, 400, 150, 500, 600, 700}, 700, 300, 100},
		{"told very late", []int{400, 100, 500, 600, 700}, 700, 400, 0},
	} {
		r := two()
		for _, end := range test.ends {
			r.Add(call(7, end-1, end, faults.Acknowledged))
		}
		r.Add(call(150, 0, 300, faults.Acknowledged)) // another shard ends no gap
		r.Add(call(60, 0, 300, faults.Ambiguous))     // nor does what is no decision
		r.Add(call(60, 0, 301, faults.Unavailable))
		r.Add(call(16383, 0, 302, faults.Acknowledged)) // a slot of nobody
		got := r.Close(at(test.closed))[0]
		if got.Gap != time.Duration(test.gap)*time.Millisecond || !got.GapFrom.Equal(at(test.from)) {
			t.Errorf("%s: a gap of %v from %v, want %d ms from %d", test.name, got.Gap, got.GapFrom.Sub(epoch), test.gap, test.from)
		}
		if got.Acknowledged != int64(len(test.ends)) || got.Ambiguous != 1 || got.Unavailable != 1 {
			t.Errorf("%s: %+v", test.name, got)
		}
	}
}

func TestRecovery(t *testing.T) {
	r := two()
	o := r.Begin(at(1000), []faults.SlotRange{{First: 10, Last: 19}})
	r.Add(call(10, 990, 1010, faults.Acknowledged)) // before it took effect
	o.Effective(at(1050))
	r.Add(call(10, 1040, 1060, faults.Acknowledged)) // sent before that
	r.Add(call(9, 1100, 1200, faults.Acknowledged))  // not one of its slots
	r.Add(call(15, 1100, 1300, faults.Unavailable))  // no decision
	if d, ok := o.Recovery(); ok {
		t.Fatalf("recovered after %v", d)
	}
	r.Add(call(15, 1350, 1400, faults.Acknowledged))
	r.Add(call(15, 1450, 1500, faults.Acknowledged)) // not the first
	if d, ok := o.Recovery(); !ok || d != 400*time.Millisecond {
		t.Errorf("recovered %v after %v, want 400ms", ok, d)
	}
}

// The recovery from a fault that takes long counts from its end, its failures from its beginning.
func TestRecoveryOfWhatTakesLong(t *testing.T) {
	r := two()
	o := r.Begin(at(1000), []faults.SlotRange{{First: 10, Last: 19}})
	r.Add(call(10, 1100, 1200, faults.Ambiguous))
	o.Done(at(3000))
	r.Add(call(10, 2999, 3001, faults.Acknowledged))
	r.Add(call(10, 3001, 3005, faults.Acknowledged))
	if d, ok := o.Recovery(); !ok || d != 5*time.Millisecond || o.Failed()[0].Ambiguous != 1 {
		t.Errorf("recovered %v after %v, failed %+v; want 5ms and one", ok, d, o.Failed())
	}
}

// Failures count from the fault's beginning until it is undone and recovered from, by the shard of
// the call, whichever slots the fault hit.
func TestFailures(t *testing.T) {
	r := two()
	o := r.Begin(at(1000), []faults.SlotRange{{First: 10, Last: 19}})
	o.Effective(at(1000))
	r.Add(call(10, 0, 999, faults.Ambiguous)) // before
	r.Add(call(10, 900, 1001, faults.Ambiguous))
	r.Add(call(99, 1000, 1500, faults.Unavailable))
	r.Add(call(120, 1000, 1500, faults.Unavailable))
	r.Add(call(10, 1600, 1700, faults.Acknowledged)) // recovered
	r.Add(call(10, 1800, 1900, faults.Ambiguous))    // and not yet undone
	o.Over(at(2000))
	r.Add(call(10, 1990, 2100, faults.Ambiguous))
	r.Add(call(10, 2001, 2100, faults.Ambiguous)) // after
	want := []faults.Failures{{Ambiguous: 3, Unavailable: 1}, {Unavailable: 1}}
	if got := o.Failed(); !slices.Equal(got, want) {
		t.Errorf("failed %+v, want %+v", got, want)
	}
}
