package limiter

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A manyCaller is an AllowMany in a goroutine of its own.
type manyCaller struct {
	*caller
	verdicts []Verdict
}

func allowMany(ctx context.Context, l *Limiter, items ...Attempt) *manyCaller {
	m := new(manyCaller)
	m.caller = call(ctx, 0, func(ctx context.Context) (Result, error) {
		m.verdicts = l.AllowMany(ctx, items)
		return Result{}, nil
	})
	return m
}

// wantCounts fails the test unless the items were told these counts.
func (m *manyCaller) wantCounts(t *testing.T, counts ...int64) {
	t.Helper()
	if !m.isDone() || len(m.verdicts) != len(counts) {
		t.Fatalf("done %v, %d verdicts, want %d", m.isDone(), len(m.verdicts), len(counts))
	}
	for i, v := range m.verdicts {
		if v.Err != nil || v.Count != counts[i] {
			t.Fatalf("item %d: count %d, %v, want count %d", i, v.Count, v.Err, counts[i])
		}
	}
}

// Users of whom nobody is there leave at once, together; a user's attempts are one call.
func TestAllowMany(t *testing.T) {
	coalescing(t, PerMinute(10), func(t *testing.T, l *Limiter, r *scripted) {
		m := allowMany(t.Context(), l, Attempt{"alice", 1}, Attempt{"bob", 5}, Attempt{"alice", 0}, Attempt{"alice", 3}, Attempt{"carol", 0})
		alice, bob, carol := r.must(t, 4), r.must(t, 5), r.must(t, 0)
		bob.count(6)
		carol.count(11)
		alice.count(7)
		m.wantCounts(t, 4, 6, 4, 7, 11)
		if m.verdicts[0].Key != alice.Key || m.verdicts[1].Key != bob.Key || m.verdicts[4].Allowed || !m.verdicts[3].Allowed {
			t.Errorf("%+v", m.verdicts)
		}
		if n := r.batches.Load(); n != 1 {
			t.Errorf("RunAll was called %d times, want once", n)
		}
	})
	coalescing(t, PerMinute(10), func(t *testing.T, l *Limiter, r *scripted) {
		if v := l.AllowMany(t.Context(), nil); len(v) != 0 {
			t.Errorf("verdicts on nothing: %v", v)
		}
	})
}

// Each item has its own error, in its own place.
func TestAllowManyErrors(t *testing.T) {
	coalescing(t, PerMinute(10), func(t *testing.T, l *Limiter, r *scripted) {
		m := allowMany(t.Context(), l, Attempt{"", 1}, Attempt{"alice", 1}, Attempt{"bob", -1}, Attempt{"bob", 2}, Attempt{"bob", 11}, Attempt{"carol", 1}, Attempt{"bob", 1})
		r.must(t, 1).fail(ErrAmbiguous)
		bob := r.must(t, 3)
		r.must(t, 1).fail(ErrUnavailable)
		bob.count(3)
		for i, want := range []error{ErrEmptyUser, ErrAmbiguous, ErrNegativeCost, nil, ErrCostAboveRate, ErrUnavailable, nil} {
			if v := m.verdicts[i]; !errors.Is(v.Err, want) || (v.Err == nil) != (want == nil) {
				t.Errorf("item %d: %v, want %v", i, v.Err, want)
			}
		}
		if m.verdicts[3].Count != 2 || m.verdicts[6].Count != 3 {
			t.Errorf("counts %d and %d, want 2 and 3", m.verdicts[3].Count, m.verdicts[6].Count)
		}
	})
}

// Users who have a call on its way take part as their other callers do, and nobody waits
// for this call to make theirs, although it may be held up elsewhere.
func TestAllowManyJoins(t *testing.T) {
	coalescing(t, PerMinute(100), func(t *testing.T, l *Limiter, r *scripted) {
		first := allow(t.Context(), l, 1)
		alone := r.must(t, 1)
		second := allow(t.Context(), l, 2)
		m := allowMany(t.Context(), l, Attempt{"alice", 4}, Attempt{"bob", 1}, Attempt{"alice", 8})
		bob := r.must(t, 1)
		third := allow(t.Context(), l, 16)
		alone.count(1)
		first.wantCount(t, 1)
		r.must(t, 30).count(31)
		second.wantCount(t, 3)
		third.wantCount(t, 31)
		// Alone, they are sent all the same.
		fourth := allow(t.Context(), l, 1)
		alone = r.must(t, 1)
		n := allowMany(t.Context(), l, Attempt{"bob", 1}, Attempt{"alice", 1})
		alone.count(32)
		fourth.wantCount(t, 32)
		r.must(t, 1).count(33)
		bob.count(1)
		m.wantCounts(t, 7, 1, 15)
		r.must(t, 1).count(2)
		n.wantCounts(t, 2, 33)
	})
}

// Guesses that were wrong are made again together, without those that were right.
func TestAllowManyStale(t *testing.T) {
	coalescing(t, PerMinute(10), func(t *testing.T, l *Limiter, r *scripted) {
		m := allowMany(t.Context(), l, Attempt{"alice", 1}, Attempt{"bob", 2}, Attempt{"carol", 3})
		alice, bob, carol := r.must(t, 1), r.must(t, 2), r.must(t, 3)
		alice.stale(time.Now().Add(time.Hour))
		carol.stale(time.Now().Add(time.Hour))
		bob.count(2)
		other := call(t.Context(), 1, func(ctx context.Context) (Result, error) { return l.AllowN(ctx, "bob", 1) })
		again := r.must(t, 1) // alice, before bob who waits no longer
		if again.Key == alice.Key {
			t.Errorf("the second guess is %q again", again.Key)
		}
		r.must(t, 3).count(3)
		r.must(t, 1).count(3)
		other.wantCount(t, 3)
		again.count(1)
		m.wantCounts(t, 1, 2, 3)
		if m.verdicts[0].Key != again.Key || m.verdicts[1].Key != bob.Key {
			t.Errorf("counted in %q and %q", m.verdicts[0].Key, m.verdicts[1].Key)
		}
		if n := r.batches.Load(); n != 2 {
			t.Errorf("RunAll was called %d times, want twice", n)
		}
	})
}

// A node that hangs holds up its own users, and nobody else.
func TestAllowManyHungNode(t *testing.T) {
	coalescing(t, PerMinute(10), func(t *testing.T, l *Limiter, r *scripted) {
		r.home = func(key string) string { return key[:1] }
		ctx, cancel := context.WithCancel(t.Context())
		m := allowMany(ctx, l, Attempt{"alice", 1}, Attempt{"bob", 2}, Attempt{"amy", 3}, Attempt{"bill", 4})
		sent := map[int64]*sentCall{}
		for c := r.next(); c != nil; c = r.next() {
			sent[c.cost()] = c
		}
		sent[2].count(2)
		sent[4].count(4)
		bob := call(t.Context(), 1, func(ctx context.Context) (Result, error) { return l.Allow(ctx, "bob") })
		r.must(t, 1).count(3)
		bob.wantCount(t, 3)
		alice := allow(t.Context(), l, 1)
		r.none(t)
		cancel()
		synctest.Wait()
		for i, want := range []error{ErrAmbiguous, nil, ErrAmbiguous, nil} {
			if v := m.verdicts[i]; want == nil && v.Err != nil || want != nil && !isCallError(v.Err, want, context.Canceled) {
				t.Errorf("item %d: %v, want %v", i, v.Err, want)
			}
		}
		r.must(t, 1).count(2)
		alice.wantCount(t, 2)
	})
}

// Items that wait for other calls leave with the caller's ctx, as any call does.
func TestAllowManyCancelled(t *testing.T) {
	coalescing(t, PerMinute(100), func(t *testing.T, l *Limiter, r *scripted) {
		allow(t.Context(), l, 1)
		alone := r.must(t, 1)
		m := allowMany(t.Context(), l, Attempt{"alice", 2}, Attempt{"alice", 4}, Attempt{"bob", 1})
		r.must(t, 1)
		second := allow(t.Context(), l, 8)
		m.cancel()
		for i, want := range []error{ErrUnavailable, ErrUnavailable, ErrAmbiguous} {
			if v := m.verdicts[i]; !isCallError(v.Err, want, context.Canceled) {
				t.Errorf("item %d: %v, want %v", i, v.Err, want)
			}
		}
		alone.count(1)
		r.must(t, 8).count(9)
		second.wantCount(t, 9)
	})
}

// A sum that the script would refuse is parted, and stays in order.
func TestAllowManySumBound(t *testing.T) {
	coalescing(t, PerMinute(MaxRate), func(t *testing.T, l *Limiter, r *scripted) {
		m := allowMany(t.Context(), l, Attempt{"alice", 1}, Attempt{"alice", MaxRate - 5}, Attempt{"alice", 5}, Attempt{"alice", 0})
		r.must(t, MaxRate-4).count(MaxRate - 4)
		r.must(t, 5).count(MaxRate + 1)
		m.wantCounts(t, 1, MaxRate-4, MaxRate+1, MaxRate-4)
	})
}

// A Runner that panics does so for the caller, and holds nobody.
func TestAllowManyPanickingRunner(t *testing.T) {
	for _, homes := range []func(string) string{func(string) string { return "one" }, func(key string) string { return key }} {
		for name, end := range map[string]func(){"panic": func() { panic("at it") }, "Goexit": runtime.Goexit} {
			coalescing(t, PerMinute(10), func(t *testing.T, l *Limiter, r *scripted) {
				r.home = homes
				m := allowMany(t.Context(), l, Attempt{"alice", 1}, Attempt{"bob", 2})
				a, b := r.next(), r.next()
				waits := allow(t.Context(), l, 4)
				a.do(end)
				b.do(end)
				if !m.isDone() || name == "panic" && m.panicked != "at it" {
					t.Errorf("%s: done %v, panic %v", name, m.isDone(), m.panicked)
				}
				for _, v := range m.verdicts {
					if !isCallError(v.Err, ErrAmbiguous, errRunnerLeft) {
						t.Errorf("%s: %v", name, v.Err)
					}
				}
				r.must(t, 4).count(4)
				waits.wantCount(t, 4)
			})
		}
	}
}

// Without coalescing only its own attempts of a user are one call.
func TestAllowManyApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newScripted()
		l, err := New(r, PerMinute(100), WithoutCoalescing())
		if err != nil {
			t.Fatal(err)
		}
		first := allow(t.Context(), l, 1)
		alone := r.must(t, 1)
		m := allowMany(t.Context(), l, Attempt{"alice", 2}, Attempt{"alice", 4})
		r.must(t, 6).count(6)
		m.wantCounts(t, 2, 6)
		alone.count(7)
		first.wantCount(t, 7)
		if !strings.Contains(m.verdicts[0].Key, "{alice}") {
			t.Errorf("%+v", m.verdicts[0])
		}
	})
}
