package main

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

var errNo = errors.New("no")

// A tamed rival counts for itself: every third attempt fails, uncounted or counted in turn.
type tamed struct {
	calls  atomic.Int64
	counts [50]atomic.Int64
}

func (r *tamed) decide(_ context.Context, users []string, verdicts []verdict) {
	for i, user := range users {
		n := r.calls.Add(1)
		verdicts[i] = verdict{allowed: true}
		if n%3 == 0 {
			verdicts[i] = verdict{err: errNo}
		}
		if n%6 != 0 {
			r.counts[user[0]].Add(1)
		}
	}
}

// users of one byte, which is their index.
func users(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = string(rune(i))
	}
	return all
}

func (r *tamed) stored() []int64 {
	stored := make([]int64, len(r.counts))
	for i := range stored {
		stored[i] = r.counts[i].Load()
	}
	return stored
}

// The ledger knows from the sources alone what a crew asked for: it agrees with a limiter that
// counted, user by user, and does not agree with one that is off by one.
func TestLedgerAgrees(t *testing.T) {
	for _, each := range []int{1, 7} {
		r := new(tamed)
		l := newLedger(contender{name: "tamed", batch: each}, ample, r, users(len(r.counts)))
		if err := l.touch(t.Context(), len(r.counts)); !errors.Is(err, errNo) {
			t.Errorf("asking for each once: %v", err)
		}
		for user, n := range r.stored() {
			if got := l.decided[user] + l.unknown[user]; got != 1 || n > 1 {
				t.Errorf("user %d was asked for %d times, counted %d", user, got, n)
			}
		}
		c := newCrew(r, l.names, 5, each, func(goroutine int) source { return workload{"zipf", 50}.source(1, goroutine) })
		c.run(t.Context(), 5*time.Millisecond)
		c.run(t.Context(), 5*time.Millisecond)
		got := c.tally()
		if got.drawn != got.decided+got.failed || got.failed == 0 || got.drawn+50 != r.calls.Load() || got.denied != 0 {
			t.Errorf("%+v after %d calls", got, r.calls.Load())
		}
		if seen := l.enter(c); seen < 2 || seen > 50 {
			t.Errorf("%d users", seen)
		}
		stored := r.stored()
		if wrong := l.compare(stored, false); wrong != "" {
			t.Error(wrong)
		}
		stored[3] += l.unknown[3] + 1
		if wrong := l.compare(stored, true); !strings.HasPrefix(wrong, `1 of 50 counters are wrong, such as that of "\x03"`) {
			t.Errorf("one too many: %q", wrong)
		}
		stored[3] = l.decided[3] - 1
		if wrong := l.compare(stored, false); !strings.HasPrefix(wrong, "1 of 50 counters are wrong") {
			t.Errorf("one too few: %q", wrong)
		}
		if wrong := l.compare(stored, true); wrong != "" {
			t.Errorf("a replica took over, and it says %q", wrong)
		}
	}
}

// Only users that were not asked for before are.
func TestTouchOnce(t *testing.T) {
	var calls atomic.Int64
	r := single(func(context.Context, string) (bool, error) { calls.Add(1); return true, nil })
	l := newLedger(contender{}, ample, r, users(100))
	for _, n := range []int{1, 30, 10, 100, 100} {
		if err := l.touch(t.Context(), n); err != nil {
			t.Error(err)
		}
	}
	if calls.Load() != 100 {
		t.Errorf("%d calls for 100 users", calls.Load())
	}
}

func TestWindows(t *testing.T) {
	day := ample.period
	noon := time.Unix(0, 0).Add(100*day + day/2)
	if got := windows(ample, noon, noon.Add(time.Hour)); len(got) != 1 || got[0] != 100 {
		t.Errorf("within a day: %v", got)
	}
	midnight := time.Unix(0, 0).Add(100 * day)
	if got := windows(ample, midnight.Add(-time.Second), midnight); len(got) != 2 || got[0] != 99 {
		t.Errorf("around midnight: %v", got)
	}
	if got := windows(ample, midnight, midnight); len(got) != 2 {
		t.Errorf("at midnight, by clocks that differ: %v", got)
	}
}
