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

var errScripted = errors.New("scripted")

func isCallError(err, kind, cause error) bool {
	call, ok := errors.AsType[*cluster.CallError](err)
	return ok && call.Kind == kind && call.Key != "" && errors.Is(call.Err, cause)
}

// coalescing runs a test in a bubble, with a limiter of a scripted Runner, and checks
// that nothing is left behind.
func coalescing(t *testing.T, limit Limit, test func(*testing.T, *Limiter, *scripted), opts ...Option) {
	synctest.Test(t, func(t *testing.T) {
		r := newScripted()
		l, err := New(r, limit, opts...)
		if err != nil {
			t.Fatal(err)
		}
		test(t, l, r)
		r.none(t)
		wantQuiet(t, l)
	})
}

// Who comes while a call is on its way waits, and then shares one with the others: each
// gets the count that it would have had alone.
func TestSharedCall(t *testing.T) {
	coalescing(t, PerMinute(10), func(t *testing.T, l *Limiter, r *scripted) {
		ctx := t.Context()
		first := allow(ctx, l, 1)
		alone := r.must(t, 1)
		var callers []*caller
		for _, n := range []int64{0, 3, 1, 0, 4, 2, 1, 0} {
			callers = append(callers, allow(ctx, l, n))
		}
		r.none(t)
		alone.count(1)
		first.wantCount(t, 1)
		r.must(t, 11).count(12)
		for i, want := range []struct {
			count     int64
			allowed   bool
			remaining int64
		}{{1, true, 9}, {4, true, 6}, {5, true, 5}, {5, true, 5}, {9, true, 1}, {11, false, 0}, {12, false, 0}, {12, false, 0}} {
			c := callers[i]
			c.wantCount(t, want.count)
			if c.res.Allowed != want.allowed || c.res.Remaining != want.remaining || c.res.Key != first.res.Key || c.res.Window != first.res.Window {
				t.Errorf("caller %d: %+v, want allowed %v, remaining %d", i, c.res, want.allowed, want.remaining)
			}
			if retry := 30 * time.Second; c.res.ResetAfter != retry || !c.res.Allowed && c.res.RetryAfter != retry || c.res.Allowed && c.res.RetryAfter != 0 {
				t.Errorf("caller %d: %+v, want 30s to the reset", i, c.res)
			}
		}
	})
}

// One who waits alone makes its call itself, within its own ctx.
func TestLoneFollower(t *testing.T) {
	type key struct{}
	coalescing(t, PerMinute(10), func(t *testing.T, l *Limiter, r *scripted) {
		first := allow(t.Context(), l, 1)
		alone := r.must(t, 1)
		second := allow(context.WithValue(t.Context(), key{}, "own"), l, 2)
		alone.count(1)
		first.wantCount(t, 1)
		sent := r.must(t, 2)
		if sent.ctx.Value(key{}) != "own" {
			t.Error("the call was not made within its caller's ctx")
		}
		third := allow(t.Context(), l, 1)
		sent.count(3)
		second.wantCount(t, 3)
		r.must(t, 1)
		third.cancel()
		third.wantError(t, ErrAmbiguous, context.Canceled)
	})
}

// Who cancels before the call is sent was never there; afterwards it may have counted.
// The others are not disturbed, whoever it is.
func TestCancelledMembers(t *testing.T) {
	coalescing(t, PerMinute(100), func(t *testing.T, l *Limiter, r *scripted) {
		ctx := t.Context()
		first := allow(ctx, l, 1)
		r.must(t, 1)
		early := allow(ctx, l, 10)
		a := allow(ctx, l, 2)
		early.cancel()
		early.wantError(t, ErrUnavailable, context.Canceled)
		peek := allow(ctx, l, 0)
		middle := allow(ctx, l, 20)
		b := allow(ctx, l, 3)
		middle.cancel()
		middle.wantError(t, ErrUnavailable, context.Canceled)
		c := allow(ctx, l, 4)
		first.cancel() // its call was its own, and the others wait for the next
		first.wantError(t, ErrAmbiguous, context.Canceled)
		shared := r.must(t, 9)
		a.cancel()
		a.wantError(t, ErrAmbiguous, context.Canceled)
		if call, _ := errors.AsType[*cluster.CallError](a.err); call.Key != shared.Key {
			t.Errorf("may have been counted in %q, want %q", call.Key, shared.Key)
		}
		shared.count(10)
		peek.wantCount(t, 3)
		b.wantCount(t, 6)
		c.wantCount(t, 10)
	})
}

// All may leave: then there is nothing to send.
func TestAllCancelled(t *testing.T) {
	coalescing(t, PerMinute(100), func(t *testing.T, l *Limiter, r *scripted) {
		first := allow(t.Context(), l, 1)
		alone := r.must(t, 1)
		for range 3 {
			c := allow(t.Context(), l, 1)
			c.cancel()
			c.wantError(t, ErrUnavailable, context.Canceled)
		}
		alone.count(1)
		first.wantCount(t, 1)
	})
}

// A deadline is kept to the moment, whoever joined before, and so is the end of the ctx of the
// first who waits; to the others it is known a little later.
func TestLeavingOnTime(t *testing.T) {
	coalescing(t, PerMinute(100), func(t *testing.T, l *Limiter, r *scripted) {
		allow(t.Context(), l, 1)
		alone := r.must(t, 1)
		first := allow(t.Context(), l, 1)
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		second, third := allow(ctx, l, 1), allow(t.Context(), l, 1)
		time.Sleep(time.Millisecond)
		synctest.Wait()
		second.wantError(t, ErrUnavailable, context.DeadlineExceeded)

		first.end()
		synctest.Wait()
		first.wantError(t, ErrUnavailable, context.Canceled)

		third.end()
		time.Sleep(letGo)
		synctest.Wait()
		third.wantError(t, ErrUnavailable, context.Canceled)
		alone.count(1)
		r.none(t)
	})
}

// A shared call lasts as long as the most patient of its members, and each member no
// longer than itself.
func TestDeadlines(t *testing.T) {
	within := func(t *testing.T, d time.Duration) context.Context {
		ctx, cancel := context.WithTimeout(t.Context(), d)
		t.Cleanup(cancel)
		return ctx
	}
	coalescing(t, PerMinute(100), func(t *testing.T, l *Limiter, r *scripted) {
		allow(t.Context(), l, 1)
		alone := r.must(t, 1)
		unsent := allow(within(t, time.Second), l, 1)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		unsent.wantError(t, ErrUnavailable, context.DeadlineExceeded)
		start := time.Now()
		a, b, c := allow(within(t, 5*time.Second), l, 1), allow(within(t, 9*time.Second), l, 1), allow(within(t, 7*time.Second), l, 1)
		alone.count(1)
		shared := r.must(t, 3)
		if at, ok := shared.ctx.Deadline(); !ok || at.Sub(start) != 9*time.Second {
			t.Errorf("the call's deadline is in %v, want 9s", at.Sub(start))
		}
		time.Sleep(6 * time.Second)
		synctest.Wait()
		a.wantError(t, ErrAmbiguous, context.DeadlineExceeded)
		shared.count(4)
		b.wantCount(t, 3)
		c.wantCount(t, 4)
	})
	coalescing(t, PerMinute(100), func(t *testing.T, l *Limiter, r *scripted) {
		allow(t.Context(), l, 1)
		alone := r.must(t, 1)
		allow(within(t, 5*time.Second), l, 1)
		allow(t.Context(), l, 1)
		allow(within(t, 9*time.Second), l, 1)
		alone.count(1)
		shared := r.must(t, 3)
		if at, ok := shared.ctx.Deadline(); ok {
			t.Errorf("the call has a deadline, %v, and one of its members has none", at)
		}
		shared.count(4)
	})
}

// A reset is made in its turn: what came before it is forgotten, what came after is not.
func TestResetInTurn(t *testing.T) {
	coalescing(t, PerMinute(100), func(t *testing.T, l *Limiter, r *scripted) {
		allow(t.Context(), l, 1)
		alone := r.must(t, 1)
		before := []*caller{allow(t.Context(), l, 2), allow(t.Context(), l, 3)}
		var resets []*caller
		for range 2 {
			resets = append(resets, call(t.Context(), 0, func(ctx context.Context) (Result, error) { return Result{}, l.Reset(ctx, "alice") }))
		}
		after := []*caller{allow(t.Context(), l, 4), allow(t.Context(), l, 5)}
		alone.count(1)
		r.must(t, 5).count(6)
		before[1].wantCount(t, 6)
		resets[1].cancel()
		resets[1].wantError(t, ErrUnavailable, context.Canceled)
		sent := r.must(t, 0)
		if sent.Script != resetScript || resets[0].isDone() || after[0].isDone() {
			t.Fatal("the reset is not made in its turn")
		}
		sent.count(1)
		if !resets[0].isDone() || resets[0].err != nil {
			t.Fatalf("reset: %v", resets[0].err)
		}
		r.must(t, 9).count(9)
		after[0].wantCount(t, 4)
		after[1].wantCount(t, 9)
	})
}

// A sum that the script would refuse is parted.
func TestSumBound(t *testing.T) {
	coalescing(t, PerMinute(MaxRate), func(t *testing.T, l *Limiter, r *scripted) {
		allow(t.Context(), l, 1)
		alone := r.must(t, 1)
		a, b, c := allow(t.Context(), l, MaxRate-1), allow(t.Context(), l, 1), allow(t.Context(), l, 1)
		alone.count(1)
		r.must(t, MaxRate).count(MaxRate + 1)
		// Nobody knows by how much the count is too large, so nobody is let through.
		for _, caller := range []*caller{a, b} {
			if caller.wantCount(t, MaxRate+1); caller.res.Allowed {
				t.Errorf("%+v", caller.res)
			}
		}
		r.must(t, 1).count(MaxRate + 1)
		c.wantCount(t, MaxRate+1)
	})
}

// Other users, and calls that were told not to coalesce, wait for nobody.
func TestApart(t *testing.T) {
	coalescing(t, PerMinute(100), func(t *testing.T, l *Limiter, r *scripted) {
		alice := allow(t.Context(), l, 1)
		bob := call(t.Context(), 1, func(ctx context.Context) (Result, error) { return l.Allow(ctx, "bob") })
		one, other := r.must(t, 1), r.must(t, 1)
		other.count(1)
		one.count(1)
		alice.wantCount(t, 1)
		bob.wantCount(t, 1)
		if alice.res.Key == bob.res.Key || !strings.Contains(alice.res.Key, "{alice}") {
			t.Errorf("counted in %q and %q", alice.res.Key, bob.res.Key)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		r := newScripted()
		l, err := New(r, PerMinute(100), WithoutCoalescing())
		if err != nil {
			t.Fatal(err)
		}
		a, b := allow(t.Context(), l, 1), allow(t.Context(), l, 2)
		r.must(t, 1).count(1)
		r.must(t, 2).count(3)
		a.wantCount(t, 1)
		b.wantCount(t, 3)
	})
}
