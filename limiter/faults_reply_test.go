package limiter_test

import (
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/slotlimit/slotlimit/cluster"
	"github.com/slotlimit/slotlimit/cluster/proxytest"
	"github.com/slotlimit/slotlimit/cluster/servertest"
)

const (
	lossyCalls   = 10_000
	lossyWorkers = 64
	lossyTimeout = 150 * time.Millisecond
)

// fivePercent of the replies do not arrive, one way or the other.
var fivePercent = proxytest.Faults{Swallow: 0.0125, Cut: 0.0125, Hang: 0.0125, Reset: 0.0125}

// lossyRun makes the calls for 200 users while replies are lost, and returns the verdict.
func lossyRun(t *testing.T, c *servertest.Cluster, p *proxytest.Proxy, l *ledger) verdict {
	t.Helper()
	p.Inject(fivePercent)
	start := time.Now()
	var wg sync.WaitGroup
	for w := range lossyWorkers {
		wg.Go(func() {
			for i := w; i < lossyCalls; i += lossyWorkers {
				_, _ = l.allow(t.Context(), fmt.Sprint("u", i%200))
			}
		})
	}
	wg.Wait()
	took := time.Since(start)
	p.Inject(proxytest.Faults{})
	v := l.audit(t, c)
	t.Logf("%d calls in %v: %v; %d unavailable; slowest %v; the proxy: %+v",
		lossyCalls, took.Round(time.Millisecond), v, l.unavailable, l.slowest.Round(time.Millisecond), p.Counts())
	return v
}

// Ten thousand calls, one arrival in twenty lost: every counter is within its bounds. An
// arrival is the reply to one call, and in batches those to several.
func TestLostReplies(t *testing.T) {
	c := servertest.Shared(t)
	for _, batched := range []bool{true, false} {
		name := map[bool]string{true: "batches", false: "plain calls"}[batched]
		t.Run(name, func(t *testing.T) {
			p := proxytest.Start(t, 1)
			client := openFor(t, cluster.Config{Addrs: c.Addrs(), Dialer: p.Dial, Timeout: lossyTimeout})
			if !batched {
				client = client.Unbatched()
			}
			l := newLedger(t, client, fmt.Sprint("lost-replies-", batched))
			v := lossyRun(t, c, p, l)
			if len(v.over) != 0 || len(v.lost) != 0 {
				t.Errorf("over %v, lost %v", v.over, v.lost)
			}
			if v.ambiguous < lossyCalls/40 {
				t.Errorf("%d calls were ambiguous: lost replies were hidden, or there were too few", v.ambiguous)
			}
			if sum := v.acked + v.ambiguous + int64(l.unavailable); sum != lossyCalls {
				t.Errorf("%d outcomes of %d calls", sum, lossyCalls)
			}
		})
	}
}

// The same limiter over the same proxy, save that the command is go-redis's own: it
// counts some calls twice and more, and tells nobody. So the test above can fail.
func TestLostRepliesPlainClient(t *testing.T) {
	c := servertest.Shared(t)
	p := proxytest.Start(t, 1)
	client := redis.NewClusterClient(&redis.ClusterOptions{
		Addrs: c.Addrs(), Dialer: p.Dial, ReadTimeout: lossyTimeout, PoolSize: 20,
	})
	defer client.Close()
	text, err := os.ReadFile("lua/fixed_window.lua")
	if err != nil {
		t.Fatal(err)
	}
	l := newLedger(t, plain{client, redis.NewScript(string(text))}, "lost-replies-plain")
	if v := lossyRun(t, c, p, l); len(v.over) == 0 {
		t.Errorf("a plain client counted nothing twice (%v): then the test of lost replies proves nothing", v)
	}
}
