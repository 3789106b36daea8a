package cluster

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/slotlimit/slotlimit/keys"
)

// A Topology is a picture of the cluster at one moment: who serves which slots.
type Topology struct {
	Shards []Shard // in order of their first slot
}

// A Shard is a primary, the hash slots that it owns, and its replicas.
type Shard struct {
	Slots    []SlotRange // in order
	Primary  Node
	Replicas []Node
}

// A SlotRange is the hash slots from First to Last, both included.
type SlotRange struct{ First, Last int }

// A Node is one server. Addr is the address that it announces to clients,
// host:port, before [Config.AddrMap]; ID is the cluster's name for it.
type Node struct{ ID, Addr string }

func (r SlotRange) String() string {
	if r.First == r.Last {
		return fmt.Sprintf("slot %d", r.First)
	}
	return fmt.Sprintf("slots %d-%d", r.First, r.Last)
}

// SlotCount returns how many of the 16384 hash slots the shard owns.
func (s Shard) SlotCount() int {
	n := 0
	for _, r := range s.Slots {
		n += r.Last - r.First + 1
	}
	return n
}

// Owner returns the shard that owns a hash slot, and false if none does.
func (t Topology) Owner(slot int) (Shard, bool) {
	for _, s := range t.Shards {
		for _, r := range s.Slots {
			if r.First <= slot && slot <= r.Last {
				return s, true
			}
		}
	}
	return Shard{}, false
}

// Unserved returns the hash slots that no shard owns, in order.
func (t Topology) Unserved() []SlotRange {
	var owned []SlotRange
	for _, s := range t.Shards {
		owned = append(owned, s.Slots...)
	}
	slices.SortFunc(owned, func(a, b SlotRange) int { return cmp.Compare(a.First, b.First) })
	var missing []SlotRange
	next := 0
	for _, r := range owned {
		if r.First > next {
			missing = append(missing, SlotRange{next, r.First - 1})
		}
		next = max(next, r.Last+1)
	}
	if next < keys.Slots {
		missing = append(missing, SlotRange{next, keys.Slots - 1})
	}
	return missing
}

// Topology asks a node of the cluster for the present picture. A wrapped client
// of a single server has one shard with every slot.
func (c *Client) Topology(ctx context.Context) (Topology, error) {
	if client, ok := c.UniversalClient.(*redis.Client); ok {
		all := []SlotRange{{0, keys.Slots - 1}}
		return Topology{[]Shard{{Slots: all, Primary: Node{Addr: client.Options().Addr}}}}, nil
	}
	slots, err := c.ClusterSlots(ctx).Result()
	if err != nil {
		return Topology{}, fmt.Errorf("cluster: topology: %w", err)
	}
	return topologyOf(slots), nil
}

// topologyOf turns CLUSTER SLOTS, a row for each range of slots, into shards.
func topologyOf(rows []redis.ClusterSlot) Topology {
	var t Topology
	at := map[Node]int{} // index in t.Shards, by primary
	for _, row := range rows {
		if len(row.Nodes) == 0 {
			continue // a range without a node: Unserved reports it
		}
		nodes := make([]Node, len(row.Nodes))
		for i, n := range row.Nodes {
			nodes[i] = Node{ID: n.ID, Addr: n.Addr}
		}
		i, known := at[nodes[0]]
		if !known {
			i = len(t.Shards)
			at[nodes[0]] = i
			t.Shards = append(t.Shards, Shard{Primary: nodes[0], Replicas: nodes[1:]})
		}
		t.Shards[i].Slots = append(t.Shards[i].Slots, SlotRange{row.Start, row.End})
	}
	for _, s := range t.Shards {
		slices.SortFunc(s.Slots, func(a, b SlotRange) int { return cmp.Compare(a.First, b.First) })
		slices.SortFunc(s.Replicas, func(a, b Node) int { return strings.Compare(a.Addr, b.Addr) })
	}
	slices.SortFunc(t.Shards, func(a, b Shard) int { return cmp.Compare(a.Slots[0].First, b.Slots[0].First) })
	return t
}
