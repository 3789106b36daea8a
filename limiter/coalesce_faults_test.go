package limiter

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"
)

// A caller whose ctx ends in the moment in which it is its turn, or its answer is there,
// stands in nobody's way.
func TestCancelledAtTheTurn(t *testing.T) {
	// In which order they are heard of is the scheduler's choice, too.
	for i := range 100 {
		atOnce := func(end, answer func()) {
			if i%2 == 0 {
				end, answer = answer, end
			}
			end()
			answer()
			synctest.Wait()
		}
		coalescing(t, PerMinute(100), func(t *testing.T, l *Limiter, r *scripted) {
			allow(t.Context(), l, 1)
			alone := r.must(t, 1)
			a := allow(t.Context(), l, 1)
			atOnce(a.end, func() { alone.reply <- counted(1) })
			if b := allow(t.Context(), l, 1); a.err == nil {
				t.Error("a call that was not answered was decided")
			} else if !b.isDone() {
				r.must(t, 1).count(2)
				b.wantCount(t, 2)
			}
		})
		coalescing(t, PerMinute(100), func(t *testing.T, l *Limiter, r *scripted) {
			allow(t.Context(), l, 1)
			alone := r.must(t, 1)
			a, b := allow(t.Context(), l, 1), allow(t.Context(), l, 1)
			alone.count(1)
			shared := r.must(t, 2)
			atOnce(a.end, func() { shared.reply <- counted(3) })
			if b.wantCount(t, 3); a.err == nil {
				a.wantCount(t, 2)
			} else {
				a.wantError(t, ErrAmbiguous, context.Canceled)
			}
		})
	}
}

// A guess that was wrong counted nothing. Who left while it was on its way is not in the
// next one, which goes to another counter: its error named the first.
func TestStaleSharedCall(t *testing.T) {
	coalescing(t, PerMinute(100), func(t *testing.T, l *Limiter, r *scripted) {
		first := allow(t.Context(), l, 1)
		alone := r.must(t, 1)
		a, b, c := allow(t.Context(), l, 1), allow(t.Context(), l, 2), allow(t.Context(), l, 4)
		alone.count(1)
		first.wantCount(t, 1)
		shared := r.must(t, 7)
		b.cancel()
		b.wantError(t, ErrAmbiguous, context.Canceled)
		shared.stale(time.Now().Add(time.Hour))
		again := r.must(t, 5)
		if again.Key == shared.Key {
			t.Errorf("the second guess is %q again", again.Key)
		}
		again.count(5)
		a.wantCount(t, 1)
		c.wantCount(t, 5)
		if a.res.Key != again.Key || c.res.Key != again.Key {
			t.Errorf("counted in %q and %q, want %q", a.res.Key, c.res.Key, again.Key)
		}
	})
	// When all have left, there is no second guess.
	coalescing(t, PerMinute(100), func(t *testing.T, l *Limiter, r *scripted) {
		allow(t.Context(), l, 1)
		alone := r.must(t, 1)
		a, b := allow(t.Context(), l, 1), allow(t.Context(), l, 2)
		alone.count(1)
		shared := r.must(t, 3)
		a.cancel()
		b.cancel()
		shared.stale(time.Now().Add(time.Hour))
		a.wantError(t, ErrAmbiguous, context.Canceled)
	})
}

// A node that is never of the caller's opinion is asked a few times.
func TestStaleForEver(t *testing.T) {
	coalescing(t, PerMinute(100), func(t *testing.T, l *Limiter, r *scripted) {
		allow(t.Context(), l, 1)
		alone := r.must(t, 1)
		a, b := allow(t.Context(), l, 1), allow(t.Context(), l, 2)
		alone.count(1)
		for i := range maxGuesses {
			r.must(t, 3).stale(time.Now().Add(time.Duration(i) * time.Hour))
		}
		a.wantError(t, ErrUnavailable, errWindowsTooShort)
		b.wantError(t, ErrUnavailable, errWindowsTooShort)
	})
}

// An error of a shared call is each caller's.
func TestSharedError(t *testing.T) {
	for _, kind := range []error{ErrUnavailable, ErrAmbiguous} {
		coalescing(t, PerMinute(100), func(t *testing.T, l *Limiter, r *scripted) {
			allow(t.Context(), l, 1)
			alone := r.must(t, 1)
			a, b := allow(t.Context(), l, 1), allow(t.Context(), l, 0)
			alone.fail(kind)
			r.must(t, 1).fail(kind)
			a.wantError(t, kind, errScripted)
			b.wantError(t, kind, errScripted)
		})
	}
}

// A Runner that panics does so for those whose call it was, and stops nobody else.
func TestPanickingRunner(t *testing.T) {
	coalescing(t, PerMinute(100), func(t *testing.T, l *Limiter, r *scripted) {
		first := allow(t.Context(), l, 1)
		alone := r.must(t, 1)
		a, b := allow(t.Context(), l, 1), allow(t.Context(), l, 1)
		alone.do(func() { panic("first") })
		if !first.isDone() || first.panicked != "first" {
			t.Fatalf("panic %v, %v", first.panicked, first.err)
		}
		shared := r.must(t, 2)
		c := allow(t.Context(), l, 1)
		shared.do(func() { panic("shared") })
		if a.panicked != "shared" || b.panicked != "shared" {
			t.Fatalf("panics %v and %v", a.panicked, b.panicked)
		}
		shared = r.must(t, 1)
		d, e := allow(t.Context(), l, 1), allow(t.Context(), l, 1)
		shared.count(4)
		c.wantCount(t, 4)
		shared = r.must(t, 2)
		f, g := allow(t.Context(), l, 1), allow(t.Context(), l, 1)
		shared.do(runtime.Goexit)
		d.wantError(t, ErrAmbiguous, errRunnerLeft)
		e.wantError(t, ErrAmbiguous, errRunnerLeft)
		r.must(t, 2).count(8)
		f.wantCount(t, 7)
		g.wantCount(t, 8)
	})
}
