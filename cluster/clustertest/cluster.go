package clustertest

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/slotlimit/slotlimit/keys"
)

// The shape of the cluster: nodes 0, 1, 2 start as primaries, and node i+Shards
// starts as the replica of node i. Nodes i and i+Shards stay in one shard for ever;
// which of them is the primary is what [Cluster.Failover] changes.
const (
	Shards = 3
	Nodes  = 6
)

// AllNodes stands for every node where a function takes a node to count or match.
const AllNodes = -1

// ErrNode is returned for a node outside 0 to Nodes-1 and for one that is in no
// state for what was asked, such as a failover to a primary or to a dead node.
var ErrNode = errors.New("clustertest: node")

// ErrSlot is returned for a slot outside 0 to 16383 and for one that is in no
// state for what was asked, such as FinishMove of a slot that nobody moves.
var ErrSlot = errors.New("clustertest: slot")

// unassigned is the owner of a slot that no shard serves.
const unassigned = -1

// A Cluster is a Redis Cluster of six nodes inside this process: three primaries,
// each with a replica, each node on a port of its own on 127.0.0.1. Make one with
// [New] or [Start]; the zero value is of no use. The package comment says what its
// nodes answer and where they differ from real ones.
//
// Every method is safe for use by several goroutines at once, and takes effect
// between two commands, never within one: a slot cannot move between the check
// that a node owns it and the run of the command.
type Cluster struct {
	// mu is read-locked while a command is checked and runs, and locked while the
	// topology changes. Commands of different shards run at the same time.
	mu      sync.RWMutex
	nodes   [Nodes]*node
	shards  [Shards]*shard
	primary [Shards]int      // shard -> node
	owner   [keys.Slots]int8 // slot -> shard, or unassigned
	down    bool             // cluster_state:fail
	epoch   int              // of the whole cluster; a node's own is at most this
	closed  bool             //
	data    *miniredis.Miniredis

	clock    clock
	faults   faults
	scripts  compiled
	settings settings
}

type settings struct {
	partial bool
	now     func() time.Time
}

// An Option changes how a new cluster behaves.
type Option func(*settings)

// WithPartialCoverage lets the rest of the cluster serve its slots while some slot
// has no living primary, as cluster-require-full-coverage no does. The default is
// that of Redis: one slot without a primary, and every node answers CLUSTERDOWN.
func WithPartialCoverage() Option {
	return func(s *settings) { s.partial = true }
}

// WithClock makes now the base of all nodes' clocks instead of [time.Now], so that
// a test can stand still at an instant. [Cluster.Advance] and [Cluster.SetSkew] are
// added to it. now is called by many goroutines at once.
func WithClock(now func() time.Time) Option {
	return func(s *settings) { s.now = now }
}

// New starts a cluster. Close it with [Cluster.Close]; [Start] does that by itself
// at the end of a test.
func New(opts ...Option) (*Cluster, error) {
	c := &Cluster{settings: settings{now: time.Now}, epoch: Shards}
	for _, opt := range opts {
		opt(&c.settings)
	}
	if err := c.openStore(); err != nil {
		return nil, err
	}
	for slot := range c.owner {
		// As redis-cli --cluster create deals them: 0-5460, 5461-10922, 10923-16383.
		c.owner[slot] = int8((slot*Shards + Shards/2) / keys.Slots)
	}
	for i := range c.nodes {
		c.nodes[i] = newNode(c, i)
	}
	for s := range c.primary {
		c.primary[s] = s
	}
	for _, n := range c.nodes {
		if err := n.listen("127.0.0.1:0"); err != nil {
			return nil, errors.Join(fmt.Errorf("clustertest: node %d: %w", n.index, err), c.Close())
		}
	}
	return c, nil
}

// A TB is what [Start] needs of a *testing.T or *testing.B. It is an interface so
// that a program which imports this package does not link package testing.
type TB interface {
	Helper()
	Fatalf(format string, args ...any)
	Cleanup(func())
}

// Start is [New] for tests: it fails the test if the cluster does not start, and
// closes it when the test ends.
func Start(tb TB, opts ...Option) *Cluster {
	tb.Helper()
	c, err := New(opts...)
	if err != nil {
		tb.Fatalf("%v", err)
		return nil
	}
	tb.Cleanup(func() {
		if err := c.Close(); err != nil {
			tb.Fatalf("%v", err)
		}
	})
	return c
}

// Close stops all nodes and waits until no goroutine of them is left. A second
// Close does nothing.
func (c *Cluster) Close() error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil
	}
	c.closed = true
	for _, n := range c.nodes {
		if n != nil {
			n.stop()
		}
	}
	c.mu.Unlock()
	for _, n := range c.nodes {
		if n != nil {
			n.served.Wait()
		}
	}
	c.data.Close()
	return nil
}

// Addrs returns the nodes' addresses, "127.0.0.1:port", node 0 first. They stay
// the same for the cluster's life.
func (c *Cluster) Addrs() []string {
	addrs := make([]string, Nodes)
	for i, n := range c.nodes {
		addrs[i] = n.addr
	}
	return addrs
}

// Addr returns the address of one node, 0 to Nodes-1.
func (c *Cluster) Addr(node int) string { return c.nodes[node].addr }

// Primary returns the node that is now the primary of a shard, 0 to Shards-1.
func (c *Cluster) Primary(shard int) int {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.primary[shard]
}

// Primaries returns the nodes that are primaries now, by shard.
func (c *Cluster) Primaries() []int {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return append([]int(nil), c.primary[:]...)
}

// node finds a node by its number.
func (c *Cluster) node(i int) (*node, error) {
	if i < 0 || i >= Nodes {
		return nil, fmt.Errorf("%w %d: there are nodes 0 to %d", ErrNode, i, Nodes-1)
	}
	return c.nodes[i], nil
}
