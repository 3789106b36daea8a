package limiter_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/slotlimit/slotlimit/cluster"
	"github.com/slotlimit/slotlimit/cluster/servertest"
)

// A thousand callers meet a cluster that is dead as a whole: each is told so in its
// time, nothing is left behind, and when the cluster is back, so is the service.
func TestOutage(t *testing.T) {
	c := breakable(t)
	for _, tt := range []struct {
		name   string
		fault  func(*servertest.Node) error
		repair func(context.Context, *servertest.Node) error
	}{
		{"paused", c.Pause, func(_ context.Context, n *servertest.Node) error { return c.Resume(n) }},
		{"killed", c.Kill, c.Restart},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if err := c.WaitWhole(ctx); err != nil {
				t.Fatal(err)
			}
			testOutage(ctx, t, c, "outage-"+tt.name, tt.fault, tt.repair)
		})
	}
}

func testOutage(ctx context.Context, t *testing.T, c *servertest.Cluster, prefix string,
	fault func(*servertest.Node) error, repair func(context.Context, *servertest.Node) error) {
	const timeout, callers = time.Second, 1000
	client := openFor(t, cluster.Config{Addrs: c.Addrs(), Timeout: timeout, DialTimeout: timeout})
	l := newLedger(t, client, prefix)
	for i := range 100 { // connections to all
		if _, err := l.allow(ctx, fmt.Sprint("u", i)); err != nil {
			t.Fatal(err)
		}
	}
	goroutines := runtime.NumGoroutine()
	for _, node := range c.Nodes() {
		if err := fault(node); err != nil {
			t.Fatal(err)
		}
	}
	start := time.Now()
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() { _, _ = l.allow(ctx, fmt.Sprint("u", i%100)) })
	}
	wg.Wait()
	t.Logf("%d callers had their answers after %v, the slowest after %v of %v: %d ambiguous, %d unavailable",
		callers, time.Since(start).Round(time.Millisecond), l.slowest.Round(time.Millisecond), timeout, total(l.ambiguous), l.unavailable)
	if l.slowest > timeout+10*time.Second {
		t.Errorf("a call took %v, with a time-out of %v", l.slowest, timeout)
	}
	if n := int(total(l.ambiguous)) + l.unavailable + len(l.unclassed); n != callers {
		t.Errorf("%d callers of %d saw an error of a dead cluster", n, callers)
	}
	settled := await(t, 30*time.Second, "the end of what the callers left running", func() bool { return runtime.NumGoroutine() <= goroutines })
	t.Logf("as many goroutines as before, %v later", settled.Round(time.Millisecond))

	for _, node := range c.Nodes() {
		if err := repair(ctx, node); err != nil {
			t.Fatal(err)
		}
	}
	resumed := await(t, time.Minute, "service after the outage", func() bool {
		for i := range 100 {
			if _, err := l.allow(ctx, fmt.Sprint("u", i)); err != nil {
				return false
			}
		}
		return true
	})
	t.Logf("service resumed after %v", resumed.Round(time.Millisecond))
	if s := client.PoolStats(); s.TotalConns != s.IdleConns || s.TotalConns == 0 {
		t.Errorf("%d connections, of which %d idle, when nobody calls", s.TotalConns, s.IdleConns)
	}
	v := l.audit(t, c)
	t.Log(v)
	if len(v.over) != 0 {
		t.Errorf("more than was counted: %v", v.over)
	}
}
