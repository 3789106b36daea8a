package clustertest

import (
	"fmt"
	"strconv"
	"time"
)

// Failover makes a living replica the primary of its shard and the old primary,
// dead or alive, its replica. The new primary serves the shard's slots with all
// keys, values and expiries, but with its own script cache, which is empty unless
// scripts were loaded there, and its own clock. As in Redis 7.0 it knows nothing of
// a slot's move that had begun.
func (c *Cluster) Failover(replica int) error {
	n, err := c.node(replica)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case n.isPrimary():
		return fmt.Errorf("%w %d: it is a primary already", ErrNode, replica)
	case !n.alive:
		return fmt.Errorf("%w %d: it is dead", ErrNode, replica)
	case n.hung != nil:
		return fmt.Errorf("%w %d: it hangs", ErrNode, replica)
	}
	c.promote(n)
	return nil
}

// promote needs c.mu.
func (c *Cluster) promote(n *node) {
	old := c.nodes[c.primary[n.shard.index]]
	c.primary[n.shard.index] = n.index
	c.epoch++
	n.epoch = c.epoch
	clear(old.migrating)
	clear(old.importing)
	c.judge()
}

// replica returns the other node of a shard that n is the primary of.
func (n *node) partner() *node { return n.cluster.nodes[(n.index+Shards)%Nodes] }

// wait answers WAIT with the number of replicas that have what was written: those
// that live and do not hang. It answers at once, without its timeout: waiting would
// change nothing here.
func (s *session) wait(args []string, _ time.Time) {
	for _, a := range args[1:] {
		if _, err := strconv.ParseInt(a, 10, 64); err != nil {
			s.reply.fail(errNotInteger)
			return
		}
	}
	if !s.node.isPrimary() {
		s.reply.fail("ERR WAIT cannot be used with replica instances. Please also note that since Redis 4.0 " +
			"if a replica is configured to be writable (which is not the default) writes to replicas are just local and are not propagated.")
		return
	}
	s.reply.integer(int64(s.node.replicas()))
}

func (n *node) replicas() int {
	if p := n.partner(); p.alive && p.hung == nil {
		return 1
	}
	return 0
}

func (s *session) role(_ []string, _ time.Time) {
	p := s.node.partner()
	if s.node.isPrimary() {
		s.reply.array(3)
		s.reply.bulk("master")
		s.reply.integer(0)
		s.reply.array(s.node.replicas())
		if s.node.replicas() > 0 {
			s.reply.array(3)
			s.reply.bulk(host)
			s.reply.bulk(strconv.Itoa(p.port))
			s.reply.bulk("0")
		}
		return
	}
	s.reply.array(5)
	s.reply.bulk("slave")
	s.reply.bulk(host)
	s.reply.integer(int64(p.port))
	s.reply.bulk("connected")
	s.reply.integer(0)
}
