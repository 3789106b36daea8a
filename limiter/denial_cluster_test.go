package limiter_test

import (
	"crypto/rand"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slotlimit/slotlimit/cluster/clustertest"
	"github.com/slotlimit/slotlimit/cluster/servertest"
	"github.com/slotlimit/slotlimit/limiter"
)

// Many attempts of few users through limiters that remember denials, as two processes
// make them: no more are allowed than the rate, and the counters end exact.
func TestDenialCacheIsExact(t *testing.T) {
	t.Run("in process", func(t *testing.T) {
		c := start(t)
		denialsAreExact(t, c.Addrs())
	})
	t.Run("on servers", func(t *testing.T) {
		denialsAreExact(t, servertest.Shared(t).Addrs())
	})
	t.Run("exactly once", func(t *testing.T) {
		denialsAreExact(t, servertest.Shared(t).Addrs(), limiter.WithExactlyOnce())
	})
}

func denialsAreExact(t *testing.T, addrs []string, opts ...limiter.Option) {
	const rate, users, goroutines, each = 50, 3, 32, 300
	opts = append(opts, limiter.WithPrefix("denials-"+rand.Text()))
	var lims []*limiter.Limiter
	for range 2 {
		lim, err := limiter.New(open(t, addrs), limiter.Per(rate, limiter.MaxPeriod), append(opts, limiter.WithDenialCache(100))...)
		if err != nil {
			t.Fatal(err)
		}
		lims = append(lims, lim)
	}
	var made, allowed, local [users]atomic.Int64
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			for i := range each {
				user := (g + i) % users
				cost := int64(i % 3)
				res, err := lims[g%2].AllowN(t.Context(), fmt.Sprint("user-", user), cost)
				if err != nil {
					t.Error(err)
					return
				}
				made[user].Add(cost)
				if res.Allowed {
					allowed[user].Add(cost)
				}
				if res.Local {
					local[user].Add(cost)
				}
			}
		})
	}
	wg.Wait()
	for _, lim := range lims {
		if err := lim.Flush(t.Context()); err != nil {
			t.Error(err)
		}
	}
	for user := range users {
		res, err := newLimiterOn(t, addrs, opts).Peek(t.Context(), fmt.Sprint("user-", user))
		if err != nil {
			t.Fatal(err)
		}
		m, a, l := made[user].Load(), allowed[user].Load(), local[user].Load()
		if res.Count != m || a > rate || l < m/2 {
			t.Errorf("user %d: %d stored of %d, %d allowed of %d, %d local", user, res.Count, m, a, rate, l)
		}
	}
}

// newLimiterOn is of a process that looks at the counters of denialsAreExact.
func newLimiterOn(t *testing.T, addrs []string, opts []limiter.Option) *limiter.Limiter {
	t.Helper()
	lim, err := limiter.New(open(t, addrs), limiter.Per(1, limiter.MaxPeriod), opts...)
	if err != nil {
		t.Fatal(err)
	}
	return lim
}

// Another process resets, another one has a higher rate: the first is seen within
// DenialRefresh, the second at once.
func TestDenialCacheAndOthers(t *testing.T) {
	c := start(t, clustertest.WithClock(stopped))
	var passed atomic.Int64
	clock := limiter.WithClock(func() time.Time { return midday.Add(time.Duration(passed.Load())) })
	caching := newLimiter(t, c, limiter.PerDay(1), limiter.WithDenialCache(10), clock)
	other := newLimiter(t, c, limiter.PerDay(5))
	allow(t, caching, "alice")
	for range 2 {
		if res := allow(t, caching, "alice"); res.Allowed || !res.Local {
			t.Errorf("%+v, want a local denial", res)
		}
	}
	if res := allow(t, other, "alice"); !res.Allowed || res.Count != 2 {
		t.Errorf("at a higher rate: %+v", res)
	}
	if err := other.Reset(t.Context(), "alice"); err != nil {
		t.Fatal(err)
	}
	passed.Add(int64(limiter.DenialRefresh))
	if res := allow(t, caching, "alice"); !res.Allowed || res.Count != 1 {
		t.Errorf("%v after a reset: %+v", limiter.DenialRefresh, res)
	}
	if err := caching.Flush(t.Context()); err != nil {
		t.Error(err)
	}
	if res := allow(t, other, "alice"); res.Count != 2 {
		t.Errorf("%+v: what was before the reset is counted", res)
	}
}

// The script keeps to its header on whatever it finds.
func TestSettleScript(t *testing.T) {
	c := start(t)
	client := open(t, c.Addrs())
	lim := newLimiter(t, c, limiter.PerDay(1), limiter.WithDenialCache(10))
	key := allow(t, lim, "alice").Key
	allow(t, lim, "alice")
	ttl := client.PExpireTime(t.Context(), key).Val()
	if err := lim.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, after := client.Get(t.Context(), key).Val(), client.PExpireTime(t.Context(), key).Val(); got != "2" || after != ttl {
		t.Errorf("%s stored, expiry %v, want 2 and %v", got, after, ttl)
	}
	allow(t, lim, "alice") // asks the node
	allow(t, lim, "alice")
	client.Del(t.Context(), key)
	if err := lim.Flush(t.Context()); err != nil || client.Exists(t.Context(), key).Val() != 0 {
		t.Errorf("a counter that was removed: %v, there again: %v", err, client.Exists(t.Context(), key).Val())
	}
	allow(t, lim, "alice")
	allow(t, lim, "alice")
	client.DecrBy(t.Context(), key, 1)
	if err := lim.Flush(t.Context()); err != nil || client.Get(t.Context(), key).Val() != "0" {
		t.Errorf("a counter that holds less: %v, %s stored, want 0", err, client.Get(t.Context(), key).Val())
	}
}
