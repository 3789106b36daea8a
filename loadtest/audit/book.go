package audit

import (
	"maps"
	"slices"
	"strings"

	"github.com/slotlimit/slotlimit/keys"
)

// A Book keeps what passes over the nodes found: of each key the latest reading, each
// key that was in a wrong place, and when which primary was visited. The zero value is
// an empty book. It is not safe for concurrent use.
type Book struct {
	readings map[string]reading
	strays   map[string]stray
	rounds   []round
	shards   []Shard        // of the latest pass
	slots    map[string]int // of some keys, as the nodes compute them
}

// A reading is a counter, where it was, and when.
type reading struct {
	Counter
	node  string
	at    int64 // the node's clock before the scan: the value is not older
	final bool  // read after the last call had come back
}

// A stray is a key on a primary that does not own its slot.
type stray struct {
	key, node, owner string
	slot             int
}

// A round is when a pass visited each primary.
type round struct {
	shards []Shard
	visits map[string]span // by node
	final  bool
}

type span struct{ from, to int64 }

// Add takes in a pass. A pass is final if it started after the last call had come
// back; the others collect counters that may be gone by then.
func (b *Book) Add(p Pass, final bool) {
	if b.readings == nil {
		b.readings, b.strays, b.slots = map[string]reading{}, map[string]stray{}, map[string]int{}
	}
	r := round{shards: p.Shards, visits: map[string]span{}, final: final}
	for _, v := range p.Visits {
		r.visits[v.Node] = span{v.From, v.To}
		for _, c := range v.Counters {
			b.add(p, v, c, final)
		}
		maps.Copy(b.slots, v.Slots)
	}
	b.rounds = append(b.rounds, r)
	b.shards = p.Shards
}

func (b *Book) add(p Pass, v Visit, c Counter, final bool) {
	slot := keys.Slot(c.Key)
	home := ""
	if i := owner(p.Shards, slot); i >= 0 {
		home = p.Shards[i].Node
	}
	if v.Node == home || c.Arriving {
		b.readings[c.Key] = reading{Counter: c, node: v.Node, at: v.From, final: final}
		return
	}
	if p.Steady {
		s := stray{key: c.Key, node: v.Node, owner: home, slot: slot}
		b.strays[s.node+" "+s.key] = s
		return
	}
	// The slot was on its way. A node that still serves it gives a value that counts.
	if c.Unread == "" {
		b.readings[c.Key] = reading{Counter: c, node: v.Node, at: v.From, final: final}
	}
}

// visited says whether a pass looked at the slot's primary while a counter of a window
// with this end was complete and had not expired, so that its absence tells something.
func (b *Book) visited(slot int, end, grace int64) bool {
	for _, r := range b.rounds {
		i := owner(r.shards, slot)
		if i < 0 {
			continue
		}
		v, ok := r.visits[r.shards[i].Node]
		if ok && (r.final || v.from >= end) && v.to < end+grace {
			return true
		}
	}
	return false
}

// Keys returns all keys that are known to be on the nodes, in no order: those to
// remove after a run.
func (b *Book) Keys() []string {
	all := make([]string, 0, len(b.readings))
	for key := range b.readings {
		all = append(all, key)
	}
	for _, s := range b.strays {
		if _, ok := b.readings[s.key]; !ok {
			all = append(all, s.key)
		}
	}
	return all
}

// sortedStrays returns the keys in wrong places, ordered by key and node.
func (b *Book) sortedStrays() []stray {
	all := make([]stray, 0, len(b.strays))
	for _, s := range b.strays {
		all = append(all, s)
	}
	slices.SortFunc(all, func(x, y stray) int {
		if c := strings.Compare(x.key, y.key); c != 0 {
			return c
		}
		return strings.Compare(x.node, y.node)
	})
	return all
}
