package servertest

import (
	"context"
	"errors"
	"fmt"
	"net"
)

// A Move is a slot on its way from one primary to another: until [Move.Finish], the
// one that has it answers for the keys that it still holds, and with ASK for others;
// the other answers only to who was sent by ASK.
type Move struct {
	cluster  *Cluster
	slot     int
	from, to *Node
}

// StartMove begins to move a slot: the primary to gets it as importing, from, which
// serves it, as migrating. No key moves yet.
func (c *Cluster) StartMove(ctx context.Context, slot int, from, to *Node) (*Move, error) {
	m := &Move{cluster: c, slot: slot, from: from, to: to}
	// In this order: a client that is sent on by from must find to ready.
	if err := m.set(ctx, to, "IMPORTING", from.ID); err != nil {
		return nil, err
	}
	if err := m.set(ctx, from, "MIGRATING", to.ID); err != nil {
		return nil, errors.Join(err, m.set(ctx, to, "STABLE"))
	}
	return m, nil
}

// Migrate moves these keys, whole, with their TTLs. Keys that are not there are passed over.
func (m *Move) Migrate(ctx context.Context, keys ...string) error {
	host, port, err := net.SplitHostPort(m.to.Addr)
	if err != nil {
		return err
	}
	args := []any{"MIGRATE", host, port, "", 0, 5000, "KEYS"}
	for _, key := range keys {
		args = append(args, key)
	}
	if err := m.from.Client.Do(ctx, args...).Err(); err != nil {
		return fmt.Errorf("migrate %d keys of slot %d: %w", len(keys), m.slot, err)
	}
	return nil
}

// Finish moves the keys that are left and hands over the slot. All nodes that answer are
// told; [Cluster.WaitWhole] waits until those that could not be have heard of it.
func (m *Move) Finish(ctx context.Context) error {
	for {
		keys, err := m.from.Client.ClusterGetKeysInSlot(ctx, m.slot, 100).Result()
		if err != nil {
			return fmt.Errorf("the keys of slot %d: %w", m.slot, err)
		}
		if len(keys) == 0 {
			break
		}
		if err := m.Migrate(ctx, keys...); err != nil {
			return err
		}
	}
	// The new owner first, lest the slot be nobody's if this is cut short here.
	for _, n := range []*Node{m.to, m.from} {
		if err := m.set(ctx, n, "NODE", m.to.ID); err != nil {
			return err
		}
	}
	for _, n := range m.cluster.nodes {
		v, err := look(ctx, n.Client)
		if err != nil || !v.primary || n == m.to || n == m.from {
			continue // a replica takes no such order, and gossip tells who does not answer
		}
		if err := m.set(ctx, n, "NODE", m.to.ID); err != nil {
			return err
		}
	}
	return nil
}

// Cancel calls off the move: from keeps the slot. Keys that have moved stay where they
// are, out of reach, as they do when a real move is given up.
func (m *Move) Cancel(ctx context.Context) error {
	return errors.Join(m.set(ctx, m.from, "STABLE"), m.set(ctx, m.to, "STABLE"))
}

func (m *Move) set(ctx context.Context, n *Node, state ...any) error {
	args := append([]any{"CLUSTER", "SETSLOT", m.slot}, state...)
	if err := n.Client.Do(ctx, args...).Err(); err != nil {
		return fmt.Errorf("set slot %d to %v on %s: %w", m.slot, state[0], n.Addr, err)
	}
	return nil
}

// MoveSlot moves a slot with its keys from the primary that serves it to another, as
// an operator's resharding does, while clients go on.
func (c *Cluster) MoveSlot(ctx context.Context, slot int, from, to *Node) error {
	m, err := c.StartMove(ctx, slot, from, to)
	if err != nil {
		return err
	}
	return m.Finish(ctx)
}
