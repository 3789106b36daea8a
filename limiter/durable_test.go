package limiter_test

import (
	"errors"
	"testing"
	"time"

	"github.com/slotlimit/slotlimit/cluster/clustertest"
	"github.com/slotlimit/slotlimit/cluster/servertest"
	"github.com/slotlimit/slotlimit/limiter"
)

func TestDurableOptions(t *testing.T) {
	for _, replicas := range []int{-1, 0} {
		if _, err := limiter.New(new(stub), limiter.PerMinute(1), limiter.WithDurable(replicas)); !errors.Is(err, limiter.ErrOption) {
			t.Errorf("durable on %d replicas: %v, want ErrOption", replicas, err)
		}
	}
}

// What writes is confirmed, and what does not is not.
func TestDurable(t *testing.T) {
	c := start(t)
	lim := newLimiter(t, c, limiter.PerDay(100), limiter.WithDurable(1))
	user := userOf(c, 0)
	waits := func() int { return c.Requests(0, "WAIT") }
	if _, err := lim.Peek(t.Context(), user); err != nil || waits() != 0 {
		t.Errorf("peek: %v, after %d WAIT, want none", err, waits())
	}
	if res := allow(t, lim, user); res.Count != 1 {
		t.Errorf("count %d, want 1", res.Count)
	}
	if err := c.Hang(3); err != nil { // the replica of node 0
		t.Fatal(err)
	}
	if _, err := lim.Allow(t.Context(), user); !errors.Is(err, limiter.ErrAmbiguous) || !errors.Is(err, limiter.ErrUnconfirmed) {
		t.Errorf("%v, want ErrAmbiguous with ErrUnconfirmed", err)
	}
	if err := lim.Reset(t.Context(), user); !errors.Is(err, limiter.ErrUnconfirmed) {
		t.Errorf("reset: %v, want ErrUnconfirmed", err)
	}
	if res, err := lim.Peek(t.Context(), user); err != nil || res.Count != 0 {
		t.Errorf("peek: %v, %v", res.Count, err)
	}
	if err := c.Resume(3); err != nil {
		t.Fatal(err)
	}
	if res := allow(t, lim, user); res.Count != 1 {
		t.Errorf("count %d after a reset, want 1", res.Count)
	}
}

// A reply that it is another window wrote nothing: the next one is what is confirmed.
func TestDurableStale(t *testing.T) {
	c := start(t)
	// This process is a day behind, so the first guess at every node is wrong.
	lim := newLimiter(t, c, limiter.PerMinute(100), limiter.WithDurable(1),
		limiter.WithClock(func() time.Time { return time.Now().Add(-24 * time.Hour) }))
	user := userOf(c, 0)
	// So that there is no WAIT behind a NOSCRIPT.
	if err := open(t, c.Addrs()).Preload(t.Context(), limiter.Scripts()...); err != nil {
		t.Fatal(err)
	}
	// The first WAIT asks whether the node can; the second, behind the reply that it is
	// another window, fails; the third confirms.
	asked := 0
	fault := c.Fail(func(r clustertest.Request) bool {
		if r.Command == "WAIT" {
			asked++
		}
		return asked == 2
	}, 1, "ERR no replica")
	if res := allow(t, lim, user); res.Count != 1 || fault.Hits() != 1 || c.Requests(0, "WAIT") != 3 {
		t.Errorf("count %d after %d WAIT, %d failed; want 1 after 3, 1 failed", res.Count, c.Requests(0, "WAIT"), fault.Hits())
	}
}

// Real servers that cannot confirm say so, and count nothing: of Redis 7.0 none knows
// WAITAOF, and the others here keep no file.
func TestDurableAOFRefused(t *testing.T) {
	c := servertest.Shared(t)
	lim, err := limiter.New(open(t, c.Addrs()), limiter.PerDay(10), limiter.WithPrefix("durable-refused"), limiter.WithDurableAOF())
	if err != nil {
		t.Fatal(err)
	}
	_, err = lim.Allow(t.Context(), "alice")
	if !errors.Is(err, limiter.ErrUnavailable) || !errors.Is(err, limiter.ErrCannotConfirm) {
		t.Errorf("%v, want ErrUnavailable with ErrCannotConfirm", err)
	}
	t.Log(err)
	if res, err := lim.Peek(t.Context(), "alice"); err != nil || res.Count != 0 {
		t.Errorf("%d counted, %v", res.Count, err)
	}
}
