package clustertest

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// A node is one server: an address, an identity, a clock, a script cache. The
// keys are its shard's.
type node struct {
	cluster *Cluster
	index   int
	shard   *shard
	id      string // for ever
	addr    string // set by the first listen, the same for every life
	port    int

	// Below: guarded by Cluster.mu.
	alive     bool
	runID     string // of one life
	started   time.Time
	epoch     int
	hung      chan struct{} // non-nil while hung; closed by Resume
	dead      chan struct{} // closed when this life ends
	listener  net.Listener
	migrating map[int]int // slot -> node that it goes to
	importing map[int]int // slot -> node that it comes from

	connections sync.Map // net.Conn -> struct{}
	served      sync.WaitGroup
	nextID      atomic.Int64
	skew        atomic.Int64 // nanoseconds
	requests    []atomic.Int64
	calls       []atomic.Int64
	cache       scriptCache
}

func newNode(c *Cluster, index int) *node {
	return &node{
		cluster:   c,
		index:     index,
		shard:     c.shards[index%Shards],
		id:        randomID(),
		epoch:     index%Shards + 1,
		migrating: map[int]int{},
		importing: map[int]int{},
		requests:  make([]atomic.Int64, len(commandList)),
		calls:     make([]atomic.Int64, len(commandList)),
	}
}

// randomID returns 40 hexadecimal digits, the form of node and run IDs.
func randomID() string {
	var b [20]byte
	rand.Read(b[:]) // never fails, says crypto/rand
	return hex.EncodeToString(b[:])
}

// listen begins a life of the node. The caller holds Cluster.mu or is its only user.
func (n *node) listen(addr string) error {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	if n.addr == "" {
		n.addr, n.port = l.Addr().String(), l.Addr().(*net.TCPAddr).Port
	}
	n.listener, n.alive, n.runID, n.started = l, true, randomID(), time.Now()
	n.dead = make(chan struct{})
	n.cache.flush()
	n.served.Add(1)
	go n.accept(l, n.dead)
	return nil
}

func (n *node) accept(l net.Listener, dead chan struct{}) {
	defer n.served.Done()
	for {
		nc, err := l.Accept()
		if err != nil {
			return
		}
		n.served.Add(1)
		go n.serve(nc, dead)
	}
}

func (n *node) serve(nc net.Conn, dead chan struct{}) {
	defer n.served.Done()
	defer nc.Close()
	n.connections.Store(nc, struct{}{})
	defer n.connections.Delete(nc)
	select {
	case <-dead:
		// stop may have closed all connections before this one was stored.
		return
	default:
	}
	c := newConnection(n, nc, dead)
	c.run()
	c.session.forget()
}

// stop ends a life of the node: no dial succeeds, all connections close. The
// caller holds Cluster.mu.
func (n *node) stop() {
	if !n.alive {
		return
	}
	n.alive = false
	close(n.dead)
	n.listener.Close()
	n.connections.Range(func(nc, _ any) bool {
		nc.(net.Conn).Close()
		return true
	})
}

// isPrimary needs Cluster.mu.
func (n *node) isPrimary() bool { return n.cluster.primary[n.shard.index] == n.index }

// Kill ends a node as SIGKILL does: its connections close, dials are refused. Its
// peers know at once. A dead primary's slots stay unreachable, and unless the
// cluster was made with [WithPartialCoverage] all nodes answer CLUSTERDOWN, until
// [Cluster.Failover] or [Cluster.Restart]: nothing here happens by a timer.
// To kill a dead node does nothing.
func (c *Cluster) Kill(node int) error {
	n, err := c.node(node)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	n.stop()
	c.judge()
	return nil
}

// Restart starts a killed node again on the same port, with an empty script cache
// and a new run_id. It comes back as a replica if its shard was failed over
// meanwhile, else in its old role; the keys are as if an AOF had kept all of them.
func (c *Cluster) Restart(node int) error {
	n, err := c.node(node)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || n.alive {
		return fmt.Errorf("%w %d: it is not dead, or the cluster is closed", ErrNode, node)
	}
	if err := n.listen(n.addr); err != nil {
		return fmt.Errorf("clustertest: node %d: %w", node, err)
	}
	c.judge()
	return nil
}

// Hang stops a node as SIGSTOP does: it accepts connections and reads nothing.
// What clients sent meanwhile runs after [Cluster.Resume], even if nobody waits for
// the reply any more. Its peers do not notice, however long it takes: call
// [Cluster.Failover] where a real cluster would have lost patience.
func (c *Cluster) Hang(node int) error {
	n, err := c.node(node)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if n.hung == nil {
		n.hung = make(chan struct{})
	}
	return nil
}

// Resume wakes a node that [Cluster.Hang] stopped. It knows at once of what
// happened to the topology meanwhile.
func (c *Cluster) Resume(node int) error {
	n, err := c.node(node)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if n.hung != nil {
		close(n.hung)
		n.hung = nil
	}
	return nil
}
