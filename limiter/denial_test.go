package limiter

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// remembering runs a test in a bubble, 20 s into a minute, with a limiter of a counting node that
// remembers denials, and checks that nothing is left to do at the end.
func remembering(t *testing.T, limit Limit, users int, test func(*testing.T, *Limiter, *countingNode)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		n := newCountingNode(limit.Period)
		l, err := New(n, limit, WithDenialCache(users))
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Second)
		test(t, l, n)
		time.Sleep(5 * time.Second)
		synctest.Wait()
		wantQuiet(t, l)
		wantNothingOwed(t, l)
	})
}

// wantNothingOwed fails the test if something is owed, or the timer is on.
func wantNothingOwed(t *testing.T, l *Limiter) {
	t.Helper()
	for i := range l.denials.shards {
		if s := &l.denials.shards[i]; len(s.byKey) != 0 || len(s.order) != 0 || len(s.carried) != 0 {
			t.Errorf("owed: %v, on its way: %v", s.byKey, s.carried)
		}
	}
	if at := l.denials.timer.at; !at.IsZero() {
		t.Errorf("the timer goes off in %v", time.Until(at))
	}
}

// attempt is an attempt that must get a decision.
func attempt(t *testing.T, l *Limiter, user string, n int64) Result {
	t.Helper()
	res, err := l.AllowN(t.Context(), user, n)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// attemptTimes makes attempts of cost 1.
func attemptTimes(t *testing.T, l *Limiter, user string, times int) {
	t.Helper()
	for range times {
		attempt(t, l, user, 1)
	}
}

// deny uses up the limit of a user, and returns the last Result of the node. From then on
// all is denied.
func deny(t *testing.T, l *Limiter, user string) Result {
	t.Helper()
	for range 1000 {
		if res := attempt(t, l, user, 1); res.Remaining == 0 {
			if res.Local {
				t.Fatalf("local: %+v", res)
			}
			return res
		}
	}
	t.Fatal("no end to what is allowed")
	return Result{}
}

// A denied user is answered locally, as if each attempt were counted, and then each is.
func TestDeniedLocally(t *testing.T) {
	remembering(t, PerMinute(2), 10, func(t *testing.T, l *Limiter, n *countingNode) {
		first := deny(t, l, "alice")
		n.called()
		attempt(t, l, "alice", 0)
		wantNothingOwed(t, l)
		count := first.Count
		for i, cost := range []int64{1, 2, 0, 1} {
			time.Sleep(100 * time.Millisecond)
			count += cost
			res := attempt(t, l, "alice", cost)
			want := first
			want.Local, want.Allowed, want.Count = true, false, count
			want.ResetAfter -= time.Duration(i+1) * 100 * time.Millisecond
			want.RetryAfter = want.ResetAfter
			if res != want {
				t.Errorf("attempt %d: %+v, want %+v", i, res, want)
			}
		}
		if called := n.called(); called != 0 || n.stored(first.Key) != 2 {
			t.Errorf("%d calls, %d stored, want none and 2", called, n.stored(first.Key))
		}
		// Then the node is asked again, and gets what is owed first.
		time.Sleep(DenialRefresh - 400*time.Millisecond)
		if res := attempt(t, l, "alice", 1); res.Local || res.Count != count+1 {
			t.Errorf("%+v, want the count %d of the node", res, count+1)
		}
		if called := n.called(); called != 2 || n.stored(first.Key) != count+1 {
			t.Errorf("%d calls, %d stored, want 2 and %d", called, n.stored(first.Key), count+1)
		}
		if res := attempt(t, l, "alice", 1); !res.Local || res.Count != count+2 {
			t.Errorf("%+v, want a local answer", res)
		}
		if res := attempt(t, l, "bob", 1); res.Local || !res.Allowed {
			t.Errorf("bob: %+v", res)
		}
	})
}

// Whatever the node's clock says, a denial ends no later than its window, and all that was
// denied in it is in its counter.
func TestDenialsEndWithTheWindow(t *testing.T) {
	for _, skew := range []time.Duration{0, time.Hour, -time.Hour, 7 * time.Second} {
		remembering(t, PerMinute(2), 10, func(t *testing.T, l *Limiter, n *countingNode) {
			n.skew = skew
			time.Sleep(333 * time.Millisecond)
			first := deny(t, l, "alice")
			end := time.Now().Add(first.ResetAfter)
			attempts := int64(2)
			for ; time.Now().Before(end); time.Sleep(7 * time.Millisecond) {
				res := attempt(t, l, "alice", 1)
				attempts++
				if left := time.Until(end); res.Allowed || res.Window != first.Window || res.Local && left <= denialMargin {
					t.Fatalf("%v before the end: %+v", left, res)
				}
			}
			if called := n.called(); called > 2*40+10 {
				t.Errorf("%d calls for %d attempts", called, attempts)
			}
			if res := attempt(t, l, "alice", 1); !res.Allowed || res.Count != 1 || res.Window != first.Window+1 {
				t.Errorf("after the end: %+v", res)
			}
			time.Sleep(DefaultGrace)
			if got := n.stored(first.Key); got != attempts {
				t.Errorf("%d stored, want %d", got, attempts)
			}
			// Nor is there an attempt needed in between.
			next := attempt(t, l, "bob", 1)
			time.Sleep(next.ResetAfter - 300*time.Millisecond)
			deny(t, l, "bob")
			time.Sleep(300 * time.Millisecond)
			if res := attempt(t, l, "bob", 1); !res.Allowed || res.Local || res.Count != 1 {
				t.Errorf("bob after the end: %+v", res)
			}
		})
	}
}

// A reset by this limiter is seen by the next attempt, and what was owed is forgotten.
func TestResetForgetsDenials(t *testing.T) {
	remembering(t, PerMinute(2), 10, func(t *testing.T, l *Limiter, n *countingNode) {
		deny(t, l, "alice")
		attemptTimes(t, l, "alice", 5)
		if err := l.Reset(t.Context(), "alice"); err != nil {
			t.Fatal(err)
		}
		if res := attempt(t, l, "alice", 1); !res.Allowed || res.Count != 1 {
			t.Errorf("%+v", res)
		}
		again := deny(t, l, "alice")
		if err := l.Flush(t.Context()); err != nil {
			t.Error(err)
		}
		if got := n.stored(again.Key); got != 2 {
			t.Errorf("%d stored, what was forgotten was counted", got)
		}
		// One that fails changes nothing.
		attemptTimes(t, l, "alice", 5)
		n.fail = away(ErrUnavailable)
		if err := l.Reset(t.Context(), "alice"); !errors.Is(err, ErrUnavailable) {
			t.Error(err)
		}
		n.fail = nil
		if res := attempt(t, l, "alice", 1); res.Local || res.Count != again.Count+6 {
			t.Errorf("%+v, want count %d", res, again.Count+6)
		}
	})
}

// A reset by somebody else is seen when the node is asked again, and is not undone by
// what is owed from before.
func TestResetElsewhere(t *testing.T) {
	remembering(t, PerMinute(2), 10, func(t *testing.T, l *Limiter, n *countingNode) {
		first := deny(t, l, "alice")
		attempt(t, l, "alice", 1)
		n.set(func() { delete(n.counters, first.Key) })
		if res := attempt(t, l, "alice", 1); !res.Local {
			t.Errorf("%+v", res)
		}
		time.Sleep(DenialRefresh)
		if res := attempt(t, l, "alice", 1); !res.Allowed || res.Count != 1 || res.Local {
			t.Errorf("after %v: %+v", DenialRefresh, res)
		}
		if n := len(l.denials.of("alice").users); n != 0 {
			t.Errorf("%d users are held, none is denied", n)
		}
		if err := l.Flush(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// The cache holds so many users and no more, and has room for those who come.
func TestDenialCacheBound(t *testing.T) {
	for _, most := range []int{1, 3, 1000} {
		remembering(t, PerMinute(1), most, func(t *testing.T, l *Limiter, n *countingNode) {
			keys := map[string]string{}
			for i := range 2 * most {
				user := fmt.Sprint("user-", i)
				keys[user] = deny(t, l, user).Key
				attempt(t, l, user, 1) // local, or not when too much is owed
			}
			held := 0
			for i := range l.denials.shards {
				s := &l.denials.shards[i]
				held += len(s.users)
				order := 0
				for e := s.newest; e != nil; e = e.older {
					order++
				}
				if order != len(s.users) || len(s.byKey) > s.most {
					t.Errorf("%d users in order, %d held, %d owe", order, len(s.users), len(s.byKey))
				}
			}
			if held > most || held < most/2 {
				t.Errorf("%d users held, want %d", held, most)
			}
			if res := attempt(t, l, fmt.Sprint("user-", 2*most-1), 0); !res.Local {
				t.Error("the last user is not remembered")
			}
			if err := l.Flush(t.Context()); err != nil {
				t.Error(err)
			}
			for user, key := range keys {
				if got := n.stored(key); got != 2 {
					t.Errorf("%s: %d stored, want 2", user, got)
				}
			}
		})
	}
}

// The users who were not heard of for the longest time make room.
func TestDenialCacheOrder(t *testing.T) {
	remembering(t, PerMinute(1), 3, func(t *testing.T, l *Limiter, n *countingNode) {
		for _, user := range []string{"a", "b", "c"} {
			deny(t, l, user)
		}
		attempt(t, l, "b", 0)
		attempt(t, l, "a", 0)
		deny(t, l, "d")
		deny(t, l, "e")
		for user, held := range map[string]bool{"a": true, "b": false, "c": false, "d": true, "e": true} {
			if _, ok := l.denials.of(user).users[user]; ok != held {
				t.Errorf("%s is held: %v, want %v", user, ok, held)
			}
		}
	})
}

func TestDenialCacheOption(t *testing.T) {
	for _, opts := range [][]Option{
		{WithDenialCache(0)}, {WithDenialCache(-1)}, {WithDenialCache(MaxDenialCache + 1)},
		{WithDenialCache(1), WithoutCoalescing()},
	} {
		if _, err := New(newScripted(), PerMinute(1), opts...); !errors.Is(err, ErrOption) {
			t.Errorf("%v, want ErrOption", err)
		}
	}
	l, err := New(newScripted(), PerMinute(1))
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Flush(t.Context()); err != nil {
		t.Errorf("Flush without a cache: %v", err)
	}
}
