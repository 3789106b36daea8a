package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/slotlimit/slotlimit/cluster/clustertest"
	"github.com/slotlimit/slotlimit/loadtest/faults"
)

// An innerNode is a node of the cluster inside this process, for faults.
type innerNode struct {
	cluster *clustertest.Cluster
	index   int
}

func (n innerNode) String() string                 { return fmt.Sprintf("node %d of this process", n.index) }
func (n innerNode) Kill(context.Context) error     { return n.cluster.Kill(n.index) }
func (n innerNode) Start(context.Context) error    { return n.cluster.Restart(n.index) }
func (n innerNode) Pause(context.Context) error    { return n.cluster.Hang(n.index) }
func (n innerNode) Resume(context.Context) error   { return n.cluster.Resume(n.index) }
func (n innerNode) CanStart(context.Context) error { return nil }
func (n innerNode) Join(context.Context) error     { return nil }
func (n innerNode) Cut(ctx context.Context) error  { return n.CanCut(ctx) }
func (n innerNode) CanCut(context.Context) error {
	return errors.New("the cluster inside this process has no network that could be cut: name a real one by -addrs")
}

// innerFaults fits faults to the cluster inside this process, whose nodes wait for orders
// to take over from a dead one.
func innerFaults(c *clustertest.Cluster, cfg *faults.Config) {
	cfg.Machine = func(_ context.Context, n *faults.Node) (faults.Machine, error) {
		return innerNode{c, slices.Index(c.Addrs(), n.Addr)}, nil
	}
	cfg.Promote = func(_ context.Context, replica string) error {
		return c.Failover(slices.Index(c.Addrs(), replica))
	}
}
