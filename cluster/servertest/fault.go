package servertest

import (
	"context"
	"fmt"
	"os"
	"time"
)

// Kill ends the node's process at once, as a crash or a lost machine would: what it had
// acknowledged and not yet sent to its replica is lost. It returns when the process
// is gone. [Cluster.Restart] brings the node back.
func (c *Cluster) Kill(n *Node) error {
	if n.PID() == 0 {
		return fmt.Errorf("kill %s: it does not run", n.Addr)
	}
	n.stop()
	return nil
}

// Pause stops the node's process without ending it: connections stay open and are
// taken, and nothing is answered until [Cluster.Resume]. To its peers it has failed
// once the node timeout is over.
func (c *Cluster) Pause(n *Node) error { return n.signal("pause", pauseSignal) }

// Resume lets a paused node run on. It works off what it was sent meanwhile, and goes on
// believing what it believed before until its peers tell it better.
func (c *Cluster) Resume(n *Node) error { return n.signal("resume", resumeSignal) }

func (n *Node) signal(verb string, s os.Signal) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.proc == nil {
		return fmt.Errorf("%s %s: it does not run", verb, n.Addr)
	}
	if err := n.proc.cmd.Process.Signal(s); err != nil {
		return fmt.Errorf("%s %s: %w", verb, n.Addr, err)
	}
	return nil
}

// Restart starts the node again, on its old port and as the node that it was in the
// cluster, and returns when it answers and has read its append-only file, if it keeps
// one. That is before it has joined its peers:
// [Cluster.WaitWhole] waits for that. A node that still runs, or is paused, is killed first.
func (c *Cluster) Restart(ctx context.Context, n *Node) error {
	n.stop()
	return n.start(ctx)
}

// manualFailover is for how long Redis goes on with a failover that was asked for.
const manualFailover = 5 * time.Second

// Failover has a replica take over from its primary, in agreement with it and without
// losing a write, and returns when the replica is the primary; the rest hear of it within
// moments. It is asked for again while the two are not ready for it.
func (c *Cluster) Failover(ctx context.Context, replica *Node) error {
	var asked time.Time
	err := until(ctx, func() error {
		v, err := look(ctx, replica.Client)
		if err != nil {
			return err
		}
		if v.primary {
			if asked.IsZero() {
				return stop(fmt.Errorf("it is a primary already"))
			}
			return nil
		}
		if time.Since(asked) < manualFailover {
			return fmt.Errorf("it is a replica still")
		}
		if err := replica.Client.ClusterFailover(ctx).Err(); err != nil {
			return err
		}
		asked = time.Now()
		return fmt.Errorf("it has only just been asked")
	})
	if err != nil {
		return fmt.Errorf("failover to %s: %w", replica.Addr, err)
	}
	return nil
}

// FlushAll removes all keys, from every node. The script caches stay. It is not for
// a [Shared] cluster, where the keys of other tests may be.
func (c *Cluster) FlushAll(ctx context.Context) error {
	for _, n := range c.nodes {
		v, err := look(ctx, n.Client)
		if err == nil && v.primary { // its replica follows it
			err = n.Client.FlushAll(ctx).Err()
		}
		if err != nil {
			return fmt.Errorf("flush %s: %w", n.Addr, err)
		}
	}
	return nil
}

// Owner returns the primary that serves the slot, as the first node that answers sees
// it: once the cluster is whole, all see it so.
func (c *Cluster) Owner(ctx context.Context, slot int) (*Node, error) {
	v, err := c.view(ctx)
	if err != nil {
		return nil, err
	}
	if n := c.node(v.owner(slot)); n != nil {
		return n, nil
	}
	return nil, fmt.Errorf("no node serves slot %d", slot)
}

// Replica returns the replica of a primary, the first one if it has several, as the
// first node that answers sees it.
func (c *Cluster) Replica(ctx context.Context, primary *Node) (*Node, error) {
	v, err := c.view(ctx)
	if err != nil {
		return nil, err
	}
	for _, s := range v.shards {
		if s.Nodes[0].ID == primary.ID && len(s.Nodes) > 1 {
			if n := c.node(s.Nodes[1].ID); n != nil {
				return n, nil
			}
		}
	}
	return nil, fmt.Errorf("%s has no replica", primary.Addr)
}

// view is that of the first node that answers.
func (c *Cluster) view(ctx context.Context) (v view, err error) {
	for _, n := range c.nodes {
		if v, err = look(ctx, n.Client); err == nil {
			return v, nil
		}
	}
	return v, err
}

func (c *Cluster) node(id string) *Node {
	for _, n := range c.nodes {
		if n.ID == id {
			return n
		}
	}
	return nil
}
