package faults

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// A move is slots on their way from one shard to another. The shards are named by one of their
// nodes: who is their primary may change on the way.
type move struct {
	slots    []int
	from, to *Node
}

// moveBatch is how many slots are on their way at one time. A node writes its view to the
// disk after every order that it gets alone, and answers nobody meanwhile.
const moveBatch = 50

func (a *attempt) reshard() error {
	chosen, done, err := a.orderly(2, false)
	if err != nil {
		return err
	}
	defer done()
	t, to := chosen[0], chosen[1]
	slots := head(t.slots, a.deed.Fault.Slots)
	o := a.begin(t.shard, t.Addr, ranges(slots))
	a.step("moving %d slots from %s to %s", len(slots), t.Addr, to.Addr)
	gone, keys := 0, 0
	for batch := range slices.Chunk(slots, moveBatch) {
		if a.hold.Err() != nil {
			break // the load has ended: what has moved has moved
		}
		n, err := a.move(&move{batch, t.Node, to.Node})
		keys += n
		if err != nil {
			return err
		}
		gone += len(batch)
	}
	o.Done(time.Now())
	a.step("moved %d slots with %d keys", gone, keys)
	if gone < len(slots) {
		return fmt.Errorf("the load ended when %d slots of %d had moved", gone, len(slots))
	}
	return nil
}

// move moves slots, key by key. When another fault comes in between, it tries again.
func (a *attempt) move(m *move) (moved int, err error) {
	a.underWay(m)
	ctx, cancel := context.WithTimeout(a.ctx, promotionTimeout)
	defer cancel()
	from, to := m.from, m.to
	for {
		n, err := a.moveOnce(ctx, m.slots, from, to)
		moved += n
		if err == nil {
			err = a.agreed(ctx, m.slots, from, to)
		}
		if err == nil {
			a.arrived(m)
			return moved, nil
		}
		if !sleep(ctx, 200*time.Millisecond) {
			return moved, err
		}
		if f, t, err := a.now(ctx, m); err == nil {
			from, to = f, t
		}
	}
}

// underWay takes down what Restore has to finish if nobody else does.
func (p *Plan) underWay(m *move) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !slices.Contains(p.moves, m) {
		p.moves = append(p.moves, m)
	}
}

func (p *Plan) arrived(m *move) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.moves = slices.DeleteFunc(p.moves, func(o *move) bool { return o == m })
}

// finish ends a move that was left on its way.
func (p *Plan) finish(ctx context.Context, m *move) error {
	ctx, cancel := context.WithTimeout(ctx, promotionTimeout)
	defer cancel()
	return until(ctx, func() error {
		from, to, err := p.now(ctx, m)
		if err != nil {
			return err
		}
		if _, err = p.moveOnce(ctx, m.slots, from, to); err != nil {
			return err
		}
		return p.agreed(ctx, m.slots, from, to)
	})
}

// agreed returns nil if both the giver and the taker say that the taker has the slots. When a replica
// that had not heard of the move was promoted meanwhile, they need not.
func (p *Plan) agreed(ctx context.Context, slots []int, from, to *Node) error {
	for _, n := range []*Node{to, from} {
		states, err := look(ctx, p.nodes, n)
		if err != nil {
			return fmt.Errorf("%s: %w", n.Addr, err)
		}
		for _, s := range states {
			has := func(slot int) bool {
				return slices.ContainsFunc(s.slots, func(r SlotRange) bool { return r.First <= slot && slot <= r.Last })
			}
			if s.Node == to && slices.ContainsFunc(slots, func(slot int) bool { return !has(slot) }) {
				return fmt.Errorf("%s does not take all of the slots for those of %s", n.Addr, to.Addr)
			}
		}
	}
	return nil
}

// now returns the primaries of a move's shards as they are now.
func (p *Plan) now(ctx context.Context, m *move) (from, to *Node, err error) {
	states, err := p.look(ctx)
	if err != nil {
		return nil, nil, err
	}
	for _, s := range states {
		if s.primary && len(s.slots) > 0 && s.shard == m.from.shard {
			from = s.Node
		}
		if s.primary && len(s.slots) > 0 && s.shard == m.to.shard {
			to = s.Node
		}
	}
	if from == nil || to == nil {
		return nil, nil, fmt.Errorf("%d slots: the primaries of their old and new shard are not known", len(m.slots))
	}
	return from, to, nil
}

// moveOnce moves slots, or what an earlier try has left of that.
func (p *Plan) moveOnce(ctx context.Context, slots []int, from, to *Node) (moved int, err error) {
	if err := begin(ctx, slots, from, to); err != nil {
		return 0, err
	}
	for {
		all, err := keysIn(ctx, from, slots)
		if err != nil {
			return moved, err
		}
		if len(all) == 0 {
			return moved, p.settle(ctx, slots, from, to)
		}
		for _, key := range all {
			if err := carry(ctx, key, from, to); err != nil {
				return moved, err
			}
			moved++
		}
	}
}

// keysIn returns keys of slots that a node holds, and none only if it holds none.
func keysIn(ctx context.Context, n *Node, slots []int) (all []string, err error) {
	pipe := n.client.Pipeline()
	replies := make([]*redis.StringSliceCmd, len(slots))
	for i, slot := range slots {
		replies[i] = pipe.ClusterGetKeysInSlot(ctx, slot, 100)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, fmt.Errorf("the keys on %s: %w", n.Addr, err)
	}
	for _, r := range replies {
		all = append(all, r.Val()...)
	}
	return all, nil
}

// begin puts slots on their way. In this order: a client that is sent on must find the
// new owner ready. What has arrived by an earlier try is left alone.
func begin(ctx context.Context, slots []int, from, to *Node) error {
	if err := setSlots(ctx, to, slots, "already the owner", "importing", from.ID); err != nil {
		return err
	}
	return setSlots(ctx, from, slots, "not the owner", "migrating", to.ID)
}

// setSlots gives a node one order for each slot. A refusal with these words is none; "" allows no refusal.
func setSlots(ctx context.Context, n *Node, slots []int, allowed string, state ...any) error {
	pipe := n.client.Pipeline()
	for _, slot := range slots {
		pipe.Do(ctx, append([]any{"cluster", "setslot", slot}, state...)...)
	}
	replies, err := pipe.Exec(ctx)
	if err == nil {
		return nil
	}
	for _, r := range replies {
		if err := r.Err(); err != nil && (allowed == "" || !strings.Contains(err.Error(), allowed)) {
			return fmt.Errorf("slots on %s: %w", n.Addr, err)
		}
	}
	return nil
}

// carry moves one key, whole, with its TTL.
func carry(ctx context.Context, key string, from, to *Node) error {
	ip, port := to.host()
	args := []any{"migrate", ip, port, key, 0, 5000}
	o := to.client.Options()
	switch {
	case o.Username != "":
		args = append(args, "auth2", o.Username, o.Password)
	case o.Password != "":
		args = append(args, "auth", o.Password)
	}
	if err := from.client.Do(ctx, args...).Err(); err != nil {
		return fmt.Errorf("migrate a key from %s to %s: %w", from.Addr, to.Addr, err)
	}
	return nil
}

// settle gives slots to their new owner. The new owner is told first, lest a slot be
// nobody's if this is cut short; the other primaries last, and only those that can be.
func (p *Plan) settle(ctx context.Context, slots []int, from, to *Node) error {
	for _, n := range []*Node{to, from} {
		if err := setSlots(ctx, n, slots, "", "node", to.ID); err != nil {
			return err
		}
	}
	for _, n := range p.nodes {
		if n != to && n != from && !p.damaged(n) {
			_ = setSlots(ctx, n, slots, "", "node", to.ID) // a replica refuses, and hears of it by gossip
		}
	}
	return nil
}

// migrate leaves some slots on their way for a time, with half of their keys moved.
func (a *attempt) migrate() error {
	chosen, done, err := a.orderly(2, false)
	if err != nil {
		return err
	}
	defer done()
	t, to := chosen[0], chosen[1]
	slots, err := inhabited(a.ctx, t)
	if err != nil {
		return err
	}
	o := a.begin(t.shard, t.Addr, ranges(slots))
	m := &move{slots, t.Node, to.Node}
	a.underWay(m)
	if err := begin(a.ctx, slots, t.Node, to.Node); err != nil {
		return err
	}
	keys, err := keysIn(a.ctx, t.Node, slots)
	if err != nil {
		return err
	}
	for _, key := range keys[:len(keys)/2] {
		if err := carry(a.ctx, key, t.Node, to.Node); err != nil {
			return err
		}
	}
	o.Done(time.Now())
	a.step("%d slots on their way from %s to %s for %v, %d keys of %d moved",
		len(slots), t.Addr, to.Addr, a.deed.Fault.For, len(keys)/2, len(keys))
	sleep(a.hold, a.deed.Fault.For)
	rest, err := a.move(m)
	if err != nil {
		return err
	}
	a.step("moved, with %d more keys", rest)
	return nil
}

// migrate leaves at most so many slots on their way, and at most so many with keys.
const (
	migrateSlots     = 300
	migrateInhabited = 10
)

// inhabited returns the first slots of a primary, up to one with which enough of them hold keys. Not
// only those that do: a shard that gave those alone would be left with fewer users than it has slots
// for, as if they were not spread evenly.
func inhabited(ctx context.Context, t target) ([]int, error) {
	slots := head(t.slots, migrateSlots)
	pipe := t.client.Pipeline()
	counts := make([]*redis.IntCmd, len(slots))
	for i, slot := range slots {
		counts[i] = pipe.ClusterCountKeysInSlot(ctx, slot)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, err
	}
	full := 0
	for i, count := range counts {
		if count.Val() > 0 {
			full++
		}
		if full == migrateInhabited {
			return slots[:i+1], nil
		}
	}
	return slots, nil
}

// head returns the first n slots, but leaves one.
func head(all []SlotRange, n int) (slots []int) {
	for _, r := range all {
		for slot := r.First; slot <= r.Last; slot++ {
			slots = append(slots, slot)
		}
	}
	return slots[:min(n, max(len(slots)-1, 0))]
}

// ranges puts slots that follow each other together.
func ranges(slots []int) (all []SlotRange) {
	for _, slot := range slots {
		if last := len(all) - 1; last >= 0 && all[last].Last == slot-1 {
			all[last].Last = slot
		} else {
			all = append(all, SlotRange{slot, slot})
		}
	}
	return all
}
