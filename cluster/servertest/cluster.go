// Package servertest runs a Redis Cluster of six real redis-server processes on
// 127.0.0.1, three primaries with a replica each, for tests that a fake cannot
// settle: what is counted when a server dies, hangs, or hands its slots over.
//
//	func TestMain(m *testing.M) { os.Exit(servertest.Main(m).Run()) }
//
//	func TestCounts(t *testing.T) {
//		c := servertest.Shared(t) // the one of this test binary; keys need a prefix of their own
//		...
//		c.CheckKeys(t, "counts:")
//	}
//
//	func TestSurvives(t *testing.T) {
//		c := servertest.Start(t) // one to break
//		...
//	}
//
// It needs a redis-server (7.0 or later) in PATH, or one or a valkey-server named by
// the variable REDIS_SERVER, and skips the test without one. [Skip] is how every
// test of this project skips for want of something outside of it: with
// SLOTLIMIT_NO_SKIP=1 in the environment such a test fails instead.
//
// The servers end with the test, and with the test's process too when that is
// killed before it could clean up.
package servertest

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	nodes = 6

	// startTimeout is far above the two seconds or so that a start takes: it
	// bounds how long a machine that cannot do it keeps a test waiting.
	startTimeout = time.Minute
)

// A Cluster is six redis-server processes. [Start] and [Shared] make one.
//
// Its methods report failure as an error, since a shared cluster outlives the
// test that started it, and are safe for concurrent use as long as no two of
// them stop or start the same node.
type Cluster struct {
	nodes []*Node
}

type config struct {
	appendOnly  bool
	nodeTimeout time.Duration
	extra       []string
}

// An Option changes how [Start] starts the servers.
type Option func(*config)

// WithAppendOnly has every server keep an append-only file, so that [Cluster.Restart]
// brings back all that a primary had acknowledged before it was killed. Without it a server comes back
// empty, and a primary that is back before its replica was promoted empties that too.
func WithAppendOnly() Option {
	return func(c *config) { c.appendOnly = true }
}

// WithNodeTimeout sets cluster-node-timeout, in whole milliseconds; the default is
// 2 s. A primary that does not answer for that long loses its slots to its replica, so
// shorter makes a failover test quick, and a loaded machine fail over on its own.
func WithNodeTimeout(d time.Duration) Option {
	return func(c *config) { c.nodeTimeout = d }
}

// WithArgs appends to every server's command line, and so overrides what is there:
// WithArgs("--maxmemory", "100mb"). Not for the address, the port or the folder.
func WithArgs(args ...string) Option {
	return func(c *config) { c.extra = append(c.extra, args...) }
}

// Start starts six servers, forms the cluster, and returns when all nodes agree and
// all replicas are in step, which takes about two seconds. The nodes 0 to 2 are the
// primaries then, each with a third of the slots in ascending order, and the node
// i+3 is the replica of i. They end with the test.
//
// Where there is no redis-server the test is skipped, see [Skip].
func Start(tb testing.TB, opts ...Option) *Cluster {
	tb.Helper()
	bin := binary(tb)
	// The servers write here until they end: so ask for it before they do, for
	// cleanups run last in, first out.
	dir := tb.TempDir()
	c, err := start(tb.Context(), bin, dir, opts...)
	if err != nil {
		tb.Fatalf("servertest: %v", err)
	}
	tb.Cleanup(c.stop)
	return c
}

func start(ctx context.Context, bin, dir string, opts ...Option) (*Cluster, error) {
	cfg := config{nodeTimeout: 2 * time.Second}
	for _, opt := range opts {
		opt(&cfg)
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()

	c := &Cluster{nodes: make([]*Node, nodes)}
	errs := make([]error, nodes)
	var wg sync.WaitGroup
	for i := range nodes {
		wg.Go(func() {
			c.nodes[i], errs[i] = startNode(ctx, bin, filepath.Join(dir, strconv.Itoa(i)), cfg)
		})
	}
	wg.Wait()
	err := errors.Join(errs...)
	if err == nil {
		err = Form(ctx, c.members())
	}
	if err != nil {
		c.stop()
		return nil, fmt.Errorf("start a cluster: %w", err)
	}
	return c, nil
}

// stop ends the servers and waits until they are gone.
func (c *Cluster) stop() {
	var wg sync.WaitGroup
	for _, n := range c.nodes {
		if n == nil {
			continue // did not start
		}
		wg.Go(func() {
			_ = n.Client.Close()
			n.stop()
		})
	}
	wg.Wait()
}

// Nodes returns the six nodes in the order of their start. Who is a primary changes
// with a failover: see [Cluster.Owner].
func (c *Cluster) Nodes() []*Node { return append([]*Node(nil), c.nodes...) }

// Addrs returns the addresses of the six nodes, "127.0.0.1:port", in the order of [Cluster.Nodes].
func (c *Cluster) Addrs() []string {
	addrs := make([]string, len(c.nodes))
	for i, n := range c.nodes {
		addrs[i] = n.Addr
	}
	return addrs
}

func (c *Cluster) members() []Member {
	members := make([]Member, len(c.nodes))
	for i, n := range c.nodes {
		members[i] = Member{Client: n.Client, Bus: n.Addr}
	}
	return members
}

func (c *Cluster) clients() []*redis.Client {
	clients := make([]*redis.Client, len(c.nodes))
	for i, n := range c.nodes {
		clients[i] = n.Client
	}
	return clients
}

// WaitWhole waits until the cluster is [Whole]: after a fault was repaired, before
// the next one. The context bounds the wait; the error says what was still missing.
func (c *Cluster) WaitWhole(ctx context.Context) error {
	return WaitWhole(ctx, c.clients())
}
