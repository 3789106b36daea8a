package audit

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/slotlimit/slotlimit/keys"
)

// A Book keeps what passes over the nodes found: of each key the latest reading, each
// key that was in a wrong place, and when which primary was visited. The zero value is
// an empty book. It is not safe for concurrent use.
type Book struct {
	readings map[string]reading
	strays   map[string]stray
	doubles  []double // of the final pass
	rounds   []round
	shards   []Shard        // of the latest pass
	slots    map[string]int // of some keys, as the nodes compute them
}

// A reading is a counter, where it was, and when.
type reading struct {
	Counter
	node  string
	at    int64     // the node's clock before the scan: the value is not older
	when  time.Time // the load test's clock after the pass: the value is not newer
	pass  int
	final bool // read after the last call had come back
}

// A stray is a key on a primary that does not own its slot.
type stray struct {
	key, node, owner string
	slot             int
	final            bool // so in the final pass
}

// A double is a key on two primaries at the end.
type double struct{ key, node, other string }

// A round is when a pass visited each primary.
type round struct {
	shards []Shard
	visits map[string]span // by node
	to     time.Time       // by the load test's clock, zero if unknown
	steady bool
	final  bool
}

type span struct{ from, to int64 }

// when returns the load test's time after a visit. Where nobody took it, the node's has to do.
func when(pass time.Time, node int64) time.Time {
	if pass.IsZero() {
		return time.UnixMilli(node)
	}
	return pass
}

// Add takes in a pass. A pass is final if it started after the last call had come
// back; the others collect counters that may be gone by then.
func (b *Book) Add(p Pass, final bool) {
	if b.readings == nil {
		b.readings, b.strays, b.slots = map[string]reading{}, map[string]stray{}, map[string]int{}
	}
	r := round{shards: p.Shards, visits: map[string]span{}, to: p.To, steady: p.Steady, final: final}
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
	found := reading{Counter: c, node: v.Node, at: v.From, when: when(p.To, v.To), pass: len(b.rounds), final: final}
	if v.Node == home || c.Arriving {
		b.found(found, p.Steady)
		return
	}
	if p.Steady {
		s := stray{key: c.Key, node: v.Node, owner: home, slot: slot, final: final}
		b.strays[s.node+" "+s.key] = s
		return
	}
	// The slot was on its way. A node that still serves it gives a value that counts.
	if c.Unread == "" {
		b.found(found, p.Steady)
	}
}

// found takes the latest reading. If one pass finds a key on two nodes, it went from one to the
// other meanwhile, and the greater value is the later one, for counters only grow. That does not happen in
// the final pass while no slot moves: there, the key is on both.
func (b *Book) found(f reading, steady bool) {
	o, known := b.readings[f.Key]
	if known && o.pass == f.pass && o.node != f.node {
		if f.final && steady {
			b.doubles = append(b.doubles, double{f.Key, o.node, f.node})
		}
		if f.Unread != "" || o.Unread == "" && o.Value > f.Value {
			return
		}
	}
	b.readings[f.Key] = f
}

// visited says when a pass first looked at the slot's primary while a counter of a window
// with this end was complete and had not expired, so that its absence tells something; false if
// none did. While slots move, a key can slip past a pass, so a pass like that tells nothing unless it is the final one.
func (b *Book) visited(slot int, end, grace int64) (time.Time, bool) {
	for _, r := range b.rounds {
		i := owner(r.shards, slot)
		if i < 0 {
			continue
		}
		v, ok := r.visits[r.shards[i].Node]
		if ok && (r.final || r.steady && v.from >= end) && v.to < end+grace {
			return when(r.to, v.to), true
		}
	}
	return time.Time{}, false
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
