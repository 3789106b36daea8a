package limiter_test

import (
	"context"
	"errors"
	"math"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slotlimit/slotlimit/cluster"
	"github.com/slotlimit/slotlimit/cluster/clustertest"
	"github.com/slotlimit/slotlimit/limiter"
)

func TestExactlyOnceOptions(t *testing.T) {
	for _, opts := range [][]limiter.Option{
		{limiter.WithExactlyOnce(), limiter.WithoutCoalescing()},
		{limiter.WithoutCoalescing(), limiter.WithExactlyOnce()},
	} {
		if _, err := limiter.New(new(stub), limiter.PerMinute(1), opts...); !errors.Is(err, limiter.ErrOption) {
			t.Errorf("exactly once without coalescing: %v, want ErrOption", err)
		}
	}
}

// storedOnce reads a counter of exactly-once mode; -1 when there is none.
func storedOnce(t *testing.T, client *cluster.Client, key string) int64 {
	t.Helper()
	n, err := client.HGet(t.Context(), key, limiter.CountField).Int64()
	if err != nil {
		return -1
	}
	return n
}

// A lost reply is no matter: the call is sent again, and counted once.
func TestExactlyOnceLostReply(t *testing.T) {
	c := start(t, clustertest.WithClock(stopped))
	lim := newLimiter(t, c, limiter.PerMinute(3), limiter.WithExactlyOnce(), limiter.WithClock(stopped))
	client := open(t, c.Addrs())
	for i := range int64(5) {
		fault := c.LoseReplies(clustertest.On(clustertest.AllNodes, "EVALSHA"), 2, clustertest.Cut)
		res := allow(t, lim, "alice")
		fault.Stop()
		if res.Count != i+1 || res.Allowed != (i < 3) || fault.Hits() != 2 {
			t.Errorf("attempt %d, %d replies lost: %+v", i+1, fault.Hits(), res)
		}
		if n := storedOnce(t, client, res.Key); n != i+1 {
			t.Errorf("%d stored, want %d", n, i+1)
		}
	}
}

// A call that is sent again after its window's end is told what became of it there while
// the counter exists; after that, nobody knows.
func TestExactlyOnceWindowEnds(t *testing.T) {
	for _, tt := range []struct {
		name  string
		after time.Duration // the window's end
		known bool
	}{
		{"within the grace", limiter.DefaultGrace / 2, true},
		{"after the grace", 2 * limiter.DefaultGrace, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := start(t, clustertest.WithClock(stopped))
			// The next connection is made when a reply was lost: then time passes.
			var armed atomic.Bool
			dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
				if armed.CompareAndSwap(true, false) {
					c.Advance(20*time.Second + tt.after)
				}
				return new(net.Dialer).DialContext(ctx, network, addr)
			}
			client := openFor(t, cluster.Config{Addrs: c.Addrs(), Timeout: 20 * time.Second, Dialer: dial})
			lim, err := limiter.New(client, limiter.PerMinute(10), limiter.WithExactlyOnce(), limiter.WithClock(stopped))
			if err != nil {
				t.Fatal(err)
			}
			first := allow(t, lim, "alice")
			fault := c.LoseReplies(clustertest.On(clustertest.AllNodes, "EVALSHA"), 1, clustertest.Cut)
			armed.Store(true)
			res, err := lim.Allow(t.Context(), "alice")
			if armed.Load() || fault.Hits() != 1 {
				t.Fatalf("%d replies lost, time passed: %t", fault.Hits(), !armed.Load())
			}
			switch {
			case tt.known && (err != nil || res.Count != 2 || res.Key != first.Key):
				t.Errorf("%+v, %v, want the second of %s", res, err, first.Key)
			case !tt.known && (!errors.Is(err, limiter.ErrAmbiguous) || !strings.Contains(err.Error(), first.Key)):
				t.Errorf("%+v, %v, want ErrAmbiguous for %s", res, err, first.Key)
			}
			if next := allow(t, lim, "alice"); next.Count != 1 || next.Window != first.Window+1 {
				t.Errorf("the next window begins with %+v", next)
			}
		})
	}
}

// Reset takes the count away and not what late calls are known by; a peek writes nothing.
func TestExactlyOnceReset(t *testing.T) {
	c := start(t, clustertest.WithClock(stopped))
	client := open(t, c.Addrs())
	lim := newLimiter(t, c, limiter.PerMinute(2), limiter.WithExactlyOnce())
	other := newLimiter(t, c, limiter.PerMinute(2), limiter.WithExactlyOnce())
	peek := func() limiter.Result {
		t.Helper()
		res, err := lim.Peek(t.Context(), "alice")
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	key := peek().Key
	if n := client.Exists(t.Context(), key).Val(); n != 0 {
		t.Error("a peek made a counter")
	}
	for range 3 {
		allow(t, lim, "alice")
	}
	allow(t, other, "alice")
	if res := peek(); res.Count != 4 || res.Allowed {
		t.Errorf("%+v, want 4, denied", res)
	}
	fault := c.LoseReplies(clustertest.On(clustertest.AllNodes, "EVALSHA"), 1, clustertest.Cut)
	if err := lim.Reset(t.Context(), "alice"); err != nil || fault.Hits() != 1 {
		t.Fatalf("%v, %d replies lost", err, fault.Hits())
	}
	if n := client.HLen(t.Context(), key).Val(); n != 3 || storedOnce(t, client, key) != 0 {
		t.Errorf("after a reset: %d fields, count %d, want the fields of both processes and 0", n, storedOnce(t, client, key))
	}
	if res := allow(t, other, "alice"); res.Count != 1 || !res.Allowed {
		t.Errorf("after a reset: %+v", res)
	}
	if err := lim.Reset(t.Context(), "bob"); err != nil { // who has no counter: check that it has a TTL
		t.Error(err)
	}
}

// The counter expires a grace after its window, as any other; one without a TTL gets it.
func TestExactlyOnceExpiry(t *testing.T) {
	c := start(t, clustertest.WithClock(stopped))
	client := open(t, c.Addrs())
	const grace = 7 * time.Second
	lim := newLimiter(t, c, limiter.PerMinute(10), limiter.WithExactlyOnce(), limiter.WithGrace(grace))
	key := ""
	for _, change := range []func(){
		func() {},
		func() {},
		func() { client.Persist(t.Context(), key) },
		func() { client.PExpireAt(t.Context(), key, midday.Add(48*time.Hour)) },
	} {
		change()
		key = allow(t, lim, "alice").Key
		due := midday.Add(20*time.Second + grace).UnixMilli()
		if at := client.PExpireTime(t.Context(), key).Val().Milliseconds(); at != due {
			t.Errorf("expires at %d, want %d", at, due)
		}
	}
	if n := storedOnce(t, client, key); n != 4 {
		t.Errorf("%d stored, want 4", n)
	}
}

// Counters of the other form are of the wrong type, both ways, and stay as they are.
func TestExactlyOnceMixed(t *testing.T) {
	c := start(t, clustertest.WithClock(stopped))
	exact := newLimiter(t, c, limiter.PerMinute(10), limiter.WithExactlyOnce())
	plain := newLimiter(t, c, limiter.PerMinute(10))
	allow(t, exact, "alice")
	allow(t, plain, "bob")
	for user, lim := range map[string]*limiter.Limiter{"alice": plain, "bob": exact} {
		if _, err := lim.Allow(t.Context(), user); !errors.Is(err, limiter.ErrUnavailable) || !strings.Contains(err.Error(), "WRONGTYPE") {
			t.Errorf("%s: %v, want ErrUnavailable because of WRONGTYPE", user, err)
		}
	}
	if a, b := allow(t, exact, "alice"), allow(t, plain, "bob"); a.Count != 2 || b.Count != 2 {
		t.Errorf("counts %d and %d, want 2", a.Count, b.Count)
	}
}

// A counter that is full stays full.
func TestExactlyOnceOverflow(t *testing.T) {
	c := start(t, clustertest.WithClock(stopped))
	client := open(t, c.Addrs())
	lim := newLimiter(t, c, limiter.PerMinute(limiter.MaxRate), limiter.WithExactlyOnce())
	key := allow(t, lim, "alice").Key
	for _, full := range []int64{limiter.MaxRate, math.MaxInt64} {
		client.HSet(t.Context(), key, limiter.CountField, full)
		for range 2 {
			if res := allow(t, lim, "alice"); res.Allowed || res.Count != limiter.MaxRate+1 || storedOnce(t, client, key) != full {
				t.Errorf("%+v, %d stored", res, storedOnce(t, client, key))
			}
		}
	}
}

// A confirmed call that is sent again is confirmed, for all that was written before it.
func TestExactlyOnceDurable(t *testing.T) {
	c := start(t, clustertest.WithClock(stopped))
	lim := newLimiter(t, c, limiter.PerDay(100), limiter.WithExactlyOnce(), limiter.WithDurable(1))
	user := userOf(c, 0)
	allow(t, lim, user)
	for i := range int64(3) {
		fault := c.LoseReplies(clustertest.On(clustertest.AllNodes, "EVALSHA"), 1, clustertest.Cut)
		if res := allow(t, lim, user); res.Count != i+2 || fault.Hits() != 1 {
			t.Errorf("%+v, %d replies lost", res, fault.Hits())
		}
	}
	if err := c.Hang(3); err != nil { // the replica of node 0
		t.Fatal(err)
	}
	// The script's reply is lost, and what is sent again is not confirmed either.
	c.LoseReplies(clustertest.On(0, "EVALSHA"), 1, clustertest.Cut)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if res, err := lim.Allow(ctx, user); !errors.Is(err, limiter.ErrAmbiguous) {
		t.Errorf("%+v, %v, want ErrAmbiguous", res, err)
	}
	if err := c.Resume(3); err != nil {
		t.Fatal(err)
	}
	if res := allow(t, lim, user); res.Count != 6 {
		t.Errorf("count %d, want 6: the call that was not confirmed was counted once", res.Count)
	}
}
