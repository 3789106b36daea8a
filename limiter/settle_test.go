package limiter

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slotlimit/slotlimit/cluster"
)

// A user who goes quiet leaves nothing out, and nobody has to come for that.
func TestQuietUserIsSettled(t *testing.T) {
	remembering(t, PerMinute(2), 10, func(t *testing.T, l *Limiter, n *countingNode) {
		key := map[string]string{}
		for _, user := range []string{"alice", "bob"} {
			key[user] = deny(t, l, user).Key
			attempt(t, l, user, 2)
			attempt(t, l, user, 1)
			time.Sleep(DenialRefresh / 2)
		}
		n.called()
		time.Sleep(2 * DenialRefresh)
		synctest.Wait()
		for user, key := range key {
			if got := n.stored(key); got != 5 {
				t.Errorf("%s: %d stored, want 5", user, got)
			}
		}
		if called := n.called(); called != 2 {
			t.Errorf("%d calls, want 2", called)
		}
	})
}

// The node's clock jumps over the window's end while something is owed: it is added as long as
// the counter is there, and what comes too late is not hidden.
func TestSettledLate(t *testing.T) {
	for _, c := range []struct {
		jump time.Duration
		lost int64
	}{{40 * time.Second, 0}, {2 * time.Hour, 3}} {
		remembering(t, PerMinute(2), 10, func(t *testing.T, l *Limiter, n *countingNode) {
			first := deny(t, l, "alice")
			attemptTimes(t, l, "alice", 3)
			n.set(func() { n.skew = c.jump })
			attempt(t, l, "bob", 1) // by which the jump is known
			err := l.Flush(t.Context())
			if got := n.stored(first.Key); got != 5-c.lost {
				t.Errorf("%d stored, want %d", got, 5-c.lost)
			}
			if c.lost == 0 && err != nil || c.lost > 0 && (!errors.Is(err, ErrUnsettled) || !strings.Contains(err.Error(), "3 lost")) {
				t.Errorf("jump of %v: %v, want %d lost", c.jump, err, c.lost)
			}
			if err := l.Flush(t.Context()); err != nil {
				t.Errorf("the second Flush: %v", err)
			}
		})
	}
}

// What could not be settled is tried again if it surely was not counted, and else
// is said to be unknown.
func TestSettlementFaults(t *testing.T) {
	fault := func(kind error) func(cluster.Call) error {
		return func(call cluster.Call) error {
			if call.Script != settleScript {
				return nil
			}
			return away(kind)(call)
		}
	}
	remembering(t, PerMinute(2), 10, func(t *testing.T, l *Limiter, n *countingNode) {
		first := deny(t, l, "alice")
		attemptTimes(t, l, "alice", 3)
		n.set(func() { n.fail = fault(ErrUnavailable) })
		if err := l.Flush(t.Context()); !errors.Is(err, ErrUnsettled) || !errors.Is(err, errScripted) || !strings.Contains(err.Error(), "3 still owed") {
			t.Errorf("Flush: %v, want 3 still owed", err)
		}
		attempt(t, l, "alice", 1) // asks the node: what is owed was on its way
		time.Sleep(5 * DenialRefresh)
		n.set(func() { n.fail = nil })
		time.Sleep(2 * DenialRefresh)
		if got := n.stored(first.Key); got != 6 {
			t.Errorf("%d stored, want 6", got)
		}
		if err := l.Flush(t.Context()); err != nil {
			t.Error(err)
		}
	})
	// The time of the second try counts from the first, not from when it was due.
	remembering(t, PerMinute(2), 10, func(t *testing.T, l *Limiter, n *countingNode) {
		first := deny(t, l, "alice")
		attemptTimes(t, l, "alice", 3)
		n.set(func() { n.fail = fault(ErrUnavailable) })
		if err := l.Flush(t.Context()); !errors.Is(err, ErrUnsettled) {
			t.Error(err)
		}
		n.set(func() { n.fail = nil })
		time.Sleep(DenialRefresh * 3 / 2)
		synctest.Wait()
		if got := n.stored(first.Key); got != 5 {
			t.Errorf("%d stored, want 5", got)
		}
	})
	// An attempt does not go before it.
	remembering(t, PerMinute(2), 10, func(t *testing.T, l *Limiter, n *countingNode) {
		deny(t, l, "alice")
		attemptTimes(t, l, "alice", 3)
		n.set(func() { n.fail = away(ErrUnavailable) })
		time.Sleep(DenialRefresh)
		if _, err := l.Allow(t.Context(), "alice"); !errors.Is(err, ErrUnavailable) {
			t.Error(err)
		}
		n.set(func() { n.fail = nil })
		if res := attempt(t, l, "alice", 1); res.Local || res.Count != 6 {
			t.Errorf("%+v, want count 6", res)
		}
	})
	for counted, set := range map[int64]func(*countingNode){
		0: func(n *countingNode) { n.fail = fault(ErrAmbiguous) },
		3: func(n *countingNode) { n.lose = fault(ErrAmbiguous) },
	} {
		remembering(t, PerMinute(2), 10, func(t *testing.T, l *Limiter, n *countingNode) {
			first := deny(t, l, "alice")
			attemptTimes(t, l, "alice", 3)
			n.set(func() { set(n) })
			time.Sleep(5 * DenialRefresh)
			if err := l.Flush(t.Context()); !errors.Is(err, ErrUnsettled) || !errors.Is(err, errScripted) || !strings.Contains(err.Error(), "3 that may") {
				t.Errorf("Flush: %v, want 3 that may have been added", err)
			}
			if got := n.stored(first.Key); got != 2+counted {
				t.Errorf("%d stored, want %d", got, 2+counted)
			}
		})
	}
}

// A node that stays away until the counter is gone takes what is owed to it along, and
// that is said.
func TestSettlementGivenUp(t *testing.T) {
	remembering(t, PerMinute(2), 10, func(t *testing.T, l *Limiter, n *countingNode) {
		deny(t, l, "alice")
		attemptTimes(t, l, "alice", 3)
		n.set(func() { n.fail = away(ErrUnavailable) })
		time.Sleep(time.Minute)
		synctest.Wait()
		wantNothingOwed(t, l)
		if err := l.Flush(t.Context()); !errors.Is(err, ErrUnsettled) || !strings.Contains(err.Error(), "0 still owed, 3 lost") {
			t.Errorf("Flush: %v, want 3 lost", err)
		}
	})
}

// A settlement that takes so long that the timer has gone off meanwhile, in vain, is made
// again when it fails, without anybody asking.
func TestSettlementFailsLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newScripted()
		l, err := New(r, PerMinute(2), WithDenialCache(10))
		if err != nil {
			t.Fatal(err)
		}
		allow(t.Context(), l, 2)
		r.must(t, 2).count(2)
		allow(t.Context(), l, 1).wantCount(t, 3)
		time.Sleep(DenialRefresh)
		a := allow(t.Context(), l, 1)
		settlement := r.next()
		time.Sleep(5 * DenialRefresh)
		settlement.fail(ErrUnavailable)
		r.must(t, 1).fail(ErrUnavailable)
		a.wantError(t, ErrUnavailable, errScripted)
		time.Sleep(2 * DenialRefresh)
		settlement = r.next()
		if settlement == nil || settlement.Script != settleScript || settlement.Args[0] != 1 {
			t.Fatalf("%+v, want a settlement of 1", settlement)
		}
		settlement.reply <- func() ([]int64, error) { return []int64{1}, nil }
		time.Sleep(2 * DenialRefresh)
		synctest.Wait()
		wantQuiet(t, l)
		wantNothingOwed(t, l)
	})
}

// While a settlement is on its way everybody waits for the node, and nobody is in the way
// of it: not one who gives up, nor many at once.
func TestSettlementInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newScripted()
		l, err := New(r, PerMinute(2), WithDenialCache(10))
		if err != nil {
			t.Fatal(err)
		}
		first := allow(t.Context(), l, 2)
		r.must(t, 2).count(5)
		first.wantCount(t, 5)
		allow(t.Context(), l, 1).wantCount(t, 6)
		allow(t.Context(), l, 2).wantCount(t, 8)
		time.Sleep(DenialRefresh)
		a := allow(t.Context(), l, 1)
		settlement := r.next()
		if settlement == nil || settlement.Script != settleScript || settlement.Args[0] != 3 || settlement.Args[1] != 5 {
			t.Fatalf("%+v, want a settlement of 3 above 5", settlement)
		}
		b, c := allow(t.Context(), l, 1), allow(t.Context(), l, 1)
		a.cancel()
		a.wantError(t, ErrUnavailable, context.Canceled)
		settlement.reply <- func() ([]int64, error) { return []int64{1}, nil }
		r.must(t, 2).count(10)
		b.wantCount(t, 9)
		c.wantCount(t, 10)
		allow(t.Context(), l, 1).wantCount(t, 11)

		// Together with other users.
		time.Sleep(DenialRefresh)
		m := allowMany(t.Context(), l, Attempt{"alice", 1}, Attempt{"bob", 1}, Attempt{"alice", 1})
		settlement = r.next()
		if settlement == nil || settlement.Script != settleScript || settlement.Args[0] != 1 {
			t.Fatalf("%+v, want a settlement of 1", settlement)
		}
		bob := r.must(t, 1)
		settlement.reply <- func() ([]int64, error) { return []int64{1}, nil }
		bob.count(1)
		r.must(t, 2).count(13)
		m.wantCounts(t, 12, 1, 13)
		m = allowMany(t.Context(), l, Attempt{"alice", 1}, Attempt{"alice", 1})
		m.wantCounts(t, 14, 15)
		if !m.verdicts[0].Local {
			t.Errorf("%+v", m.verdicts[0])
		}
		waits := allow(t.Context(), l, 1)
		waits.wantCount(t, 16) // local
		flush := call(t.Context(), 0, func(ctx context.Context) (Result, error) { return Result{}, l.Flush(ctx) })
		settlement = r.next()
		waits = allow(t.Context(), l, 1)
		settlement.reply <- func() ([]int64, error) { return []int64{1}, nil }
		r.must(t, 1).count(17)
		if waits.wantCount(t, 17); waits.res.Local || !flush.isDone() || flush.err != nil {
			t.Errorf("%+v; Flush: done %v, %v", waits.res, flush.isDone(), flush.err)
		}

		// An answer from before a reset is not kept beyond it.
		time.Sleep(DenialRefresh)
		last := allow(t.Context(), l, 1)
		sent := r.must(t, 1)
		reset := call(t.Context(), 0, func(ctx context.Context) (Result, error) { return Result{}, l.Reset(ctx, "alice") })
		sent.count(18)
		last.wantCount(t, 18)
		r.must(t, 0).count(1)
		if !reset.isDone() || reset.err != nil {
			t.Errorf("reset: %v", reset.err)
		}
		last = allow(t.Context(), l, 2)
		r.must(t, 2).count(2)
		last.wantCount(t, 2)

		allow(t.Context(), l, 1).wantCount(t, 3)
		flush = call(t.Context(), 0, func(ctx context.Context) (Result, error) { return Result{}, l.Flush(ctx) })
		r.next().do(func() { panic("at it") })
		if flush.panicked != "at it" {
			t.Errorf("panic %v", flush.panicked)
		}
		if err := l.Flush(t.Context()); !errors.Is(err, ErrUnsettled) || !errors.Is(err, errRunnerLeft) {
			t.Errorf("Flush: %v", err)
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		wantQuiet(t, l)
		wantNothingOwed(t, l)
	})
}
