package clustertest

import (
	"sync/atomic"
	"time"
)

// A clock is what all nodes share: the base and how far Advance moved it.
type clock struct {
	ahead atomic.Int64 // nanoseconds
}

// now is the node's clock: the base, plus what Advance added, plus the node's skew.
func (n *node) now() time.Time {
	moved := n.cluster.clock.ahead.Load() + n.skew.Load()
	return n.cluster.settings.now().Add(time.Duration(moved))
}

// Now returns the clock of one node, 0 to Nodes-1: what TIME answers there, and
// what decides there whether a key has expired.
func (c *Cluster) Now(node int) time.Time { return c.nodes[node].now() }

// Advance moves the clocks of all nodes by d, forward if d is positive, so that
// keys expire as if d had passed. It returns at once.
func (c *Cluster) Advance(d time.Duration) { c.clock.ahead.Add(int64(d)) }

// SetSkew puts the clock of one node, 0 to Nodes-1, d ahead of the others, behind
// if d is negative. It replaces an earlier skew of that node. Keys' expiry instants
// do not change, they only come sooner or later by that node's clock.
func (c *Cluster) SetSkew(node int, d time.Duration) { c.nodes[node].skew.Store(int64(d)) }
