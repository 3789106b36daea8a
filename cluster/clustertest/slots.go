package clustertest

import (
	"fmt"
	"slices"

	"github.com/slotlimit/slotlimit/keys"
)

// A Range is the hash slots from First to Last, both included.
type Range struct{ First, Last int }

// Slots returns the ranges of slots that a node serves, in order; none for a replica.
func (c *Cluster) Slots(node int) []Range {
	c.mu.RLock()
	defer c.mu.RUnlock()
	n, err := c.node(node)
	if err != nil || !n.isPrimary() {
		return nil
	}
	return c.ranges(n.shard.index)
}

func (c *Cluster) ranges(shard int) []Range {
	var ranges []Range
	for slot, owner := range c.owner {
		if int(owner) != shard {
			continue
		}
		if last := len(ranges) - 1; last >= 0 && ranges[last].Last == slot-1 {
			ranges[last].Last = slot
			continue
		}
		ranges = append(ranges, Range{slot, slot})
	}
	return ranges
}

// Owner returns the node that serves a slot, or -1 if none does.
func (c *Cluster) Owner(slot int) int {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if slot < 0 || slot >= keys.Slots || c.owner[slot] == unassigned {
		return -1
	}
	return c.primary[c.owner[slot]]
}

// target checks a slot and the primary that it is to go to. The caller holds c.mu.
func (c *Cluster) target(slot, to int) (*node, error) {
	if slot < 0 || slot >= keys.Slots {
		return nil, fmt.Errorf("%w %d: slots are 0 to %d", ErrSlot, slot, keys.Slots-1)
	}
	n, err := c.node(to)
	if err != nil {
		return nil, err
	}
	if !n.isPrimary() {
		return nil, fmt.Errorf("%w %d: it is a replica, which owns no slots", ErrNode, to)
	}
	return n, nil
}

// MoveSlot gives a slot with all its keys to another primary at once. The former
// owner answers MOVED from then on. A move of the slot that had begun is over.
func (c *Cluster) MoveSlot(slot, to int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	n, err := c.target(slot, to)
	if err != nil {
		return err
	}
	for _, s := range c.shards {
		if s == n.shard {
			continue
		}
		for _, key := range s.inSlot(slot) {
			s.transfer(key, n.shard)
		}
	}
	c.settle(slot, n)
	return nil
}

// Unassign takes a slot from its owner, as CLUSTER DELSLOTS on all nodes does: the
// slot answers CLUSTERDOWN, and so do all others unless [WithPartialCoverage] was
// asked for. The keys stay where they are. [Cluster.MoveSlot] assigns it again.
func (c *Cluster) Unassign(slot int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if slot < 0 || slot >= keys.Slots {
		return fmt.Errorf("%w %d: slots are 0 to %d", ErrSlot, slot, keys.Slots-1)
	}
	c.owner[slot] = unassigned
	c.judge()
	return nil
}

// BeginMove starts to move a slot: its owner becomes MIGRATING, the primary `to`
// IMPORTING. Until [Cluster.FinishMove] the owner answers ASK for keys that it has
// no more or not yet, and TRYAGAIN for several keys of which it has some.
func (c *Cluster) BeginMove(slot, to int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	n, err := c.target(slot, to)
	if err != nil {
		return err
	}
	if c.owner[slot] == unassigned {
		return fmt.Errorf("%w %d: nobody owns it", ErrSlot, slot)
	}
	from := c.nodes[c.primary[c.owner[slot]]]
	if from == n {
		return fmt.Errorf("%w %d: node %d owns it already", ErrSlot, slot, to)
	}
	from.migrating[slot] = n.index
	n.importing[slot] = from.index
	return nil
}

// MoveKey moves one key of a slot whose move has begun, over one of that name that
// the other node has, as MIGRATE with REPLACE does. It fails if the key is not on
// the slot's owner.
func (c *Cluster) MoveKey(key string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	slot := keys.Slot(key)
	from, to, err := c.move(slot)
	if err != nil {
		return err
	}
	if !from.shard.has(key, from.now()) || !from.shard.transfer(key, to.shard) {
		return fmt.Errorf("%w %d: node %d has no key %q", ErrSlot, slot, from.index, key)
	}
	return nil
}

// FinishMove moves the keys that are left and gives the slot to the node that
// [Cluster.BeginMove] named.
func (c *Cluster) FinishMove(slot int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	from, to, err := c.move(slot)
	if err != nil {
		return err
	}
	for _, key := range from.shard.inSlot(slot) {
		from.shard.transfer(key, to.shard)
	}
	c.settle(slot, to)
	return nil
}

// move returns the two ends of a move that has begun. The caller holds c.mu.
func (c *Cluster) move(slot int) (from, to *node, err error) {
	if slot >= 0 && slot < keys.Slots && c.owner[slot] != unassigned {
		from = c.nodes[c.primary[c.owner[slot]]]
		if index, ok := from.migrating[slot]; ok {
			return from, c.nodes[index], nil
		}
	}
	return nil, nil, fmt.Errorf("%w %d: no move of it has begun", ErrSlot, slot)
}

// settle makes n's shard the owner of a slot and ends what moves were under way.
// The caller holds c.mu.
func (c *Cluster) settle(slot int, n *node) {
	if c.owner[slot] != int8(n.shard.index) {
		c.owner[slot] = int8(n.shard.index)
		c.epoch++
		n.epoch = c.epoch
	}
	for _, other := range c.nodes {
		delete(other.migrating, slot)
		delete(other.importing, slot)
	}
	c.judge()
}

// inSlot returns the keys of a slot in the store, sorted, the expired included.
func (s *shard) inSlot(slot int) []string {
	return slices.DeleteFunc(s.db.Keys(), func(key string) bool { return keys.Slot(key) != slot })
}
