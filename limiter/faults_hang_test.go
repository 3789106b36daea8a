package limiter_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/slotlimit/slotlimit/cluster"
	"github.com/slotlimit/slotlimit/cluster/proxytest"
	"github.com/slotlimit/slotlimit/cluster/servertest"
	"github.com/slotlimit/slotlimit/keys"
	"github.com/slotlimit/slotlimit/limiter"
)

// A hangUp is a client whose replies can be held back, and the counter of one user.
type hangUp struct {
	*ledger
	proxy *proxytest.Proxy
	node  *servertest.Node
	key   string
}

// newHangUp returns one with a call made already, so that a connection is open.
func newHangUp(t *testing.T, c *servertest.Cluster, prefix string, cfg cluster.Config) hangUp {
	t.Helper()
	p := proxytest.Start(t, 1)
	cfg.Addrs, cfg.Dialer = c.Addrs(), p.Dial
	h := hangUp{ledger: newLedger(t, openFor(t, cfg), prefix), proxy: p}
	res, err := h.allow(t.Context(), "alice")
	if err != nil {
		t.Fatal(err)
	}
	h.key = res.Key
	if h.node, err = c.Owner(t.Context(), keys.Slot(h.key)); err != nil {
		t.Fatal(err)
	}
	return h
}

// hang makes a call whose reply is held back, and returns when the script has run;
// the channel gets the outcome.
func (h hangUp) hang(t *testing.T, ctx context.Context) <-chan error {
	t.Helper()
	before := h.stored(t)
	h.proxy.Inject(proxytest.Faults{Hang: 1})
	outcome := make(chan error, 1)
	go func() {
		_, err := h.allow(ctx, "alice")
		outcome <- err
	}()
	await(t, 30*time.Second, "the script runs", func() bool { return h.stored(t) > before })
	return outcome
}

func (h hangUp) stored(t *testing.T) int64 {
	t.Helper()
	n, err := h.node.Client.Get(t.Context(), h.key).Int64()
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// A call that waits for its reply ends when its caller cancels, and says that it may
// have counted.
func TestCancelledCall(t *testing.T) {
	c := servertest.Shared(t)
	h := newHangUp(t, c, "cancelled-call", cluster.Config{Timeout: time.Minute})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	outcome := h.hang(t, ctx)
	start := time.Now()
	cancel()
	err := <-outcome
	took := time.Since(start)
	t.Logf("%v after it was cancelled: %v", took.Round(10*time.Microsecond), err)
	if !errors.Is(err, limiter.ErrAmbiguous) || !errors.Is(err, context.Canceled) || took > 5*time.Second {
		t.Errorf("%v after %v, want ErrAmbiguous and context.Canceled at once", err, took)
	}
	h.proxy.Inject(proxytest.Faults{})
	if res, err := h.allow(t.Context(), "alice"); err != nil || res.Count != 3 {
		t.Errorf("count %d, %v, want 3", res.Count, err)
	}
	h.audit(t, c)
}

// A caller's deadline holds, however patient the client, when the node is slow.
func TestSlowNode(t *testing.T) {
	c := servertest.Shared(t)
	h := newHangUp(t, c, "slow-node", cluster.Config{Timeout: time.Minute})
	h.proxy.Inject(proxytest.Faults{Delay: 1, Latency: 30 * time.Second})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	start := time.Now()
	_, err := h.allow(ctx, "alice")
	took := time.Since(start)
	t.Logf("with 50ms, %v: %v", took.Round(10*time.Microsecond), err)
	if err == nil || took > 5*time.Second {
		t.Errorf("%v after %v, want an error after 50ms", err, took)
	}
	h.proxy.Inject(proxytest.Faults{})
	if v := h.audit(t, c); len(v.over)+len(v.lost) != 0 {
		t.Error(v)
	}
}

// The only connection is taken by a call that hangs: another did not run, and says so.
func TestPoolTimeout(t *testing.T) {
	c := servertest.Shared(t)
	h := newHangUp(t, c, "pool-timeout", cluster.Config{Timeout: time.Second, PoolSize: 1})
	outcome := h.hang(t, t.Context())
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := h.allow(ctx, "alice"); !errors.Is(err, limiter.ErrUnavailable) {
		t.Errorf("without a connection: %v, want ErrUnavailable", err)
	}
	if n := h.stored(t); n != 2 {
		t.Errorf("%d stored, want 2", n)
	}
	h.proxy.Inject(proxytest.Faults{})
	// One that waits longer gets its turn, when the first has given up.
	if res, err := h.allow(t.Context(), "alice"); err != nil || res.Count != 3 {
		t.Errorf("count %d, %v, want 3", res.Count, err)
	}
	if err := <-outcome; !errors.Is(err, limiter.ErrAmbiguous) {
		t.Errorf("the call that hung: %v, want ErrAmbiguous", err)
	}
	h.audit(t, c)
}
