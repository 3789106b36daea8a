package watch

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/slotlimit/slotlimit/keys"
	"github.com/slotlimit/slotlimit/loadtest/audit"
)

// A Look is the joint picture of what all nodes say at one time.
type Look struct {
	From, To time.Time // when the first node was asked, and the last one had answered

	// Nodes are all that are known, by the cluster's name for them. One that does not answer has
	// here what it said last.
	Nodes map[string]Node

	// Owners are the names of the primaries by hash slot, "" for a slot of nobody.
	Owners [keys.Slots]string

	epochs [keys.Slots]int64 // of the owners, where the view that named them has it
}

// A Node is what one node says of itself.
type Node struct {
	ID, Addr string

	Seen   time.Time // when it was asked what it answered last; zero if it never did
	Missed int       // looks since then

	RunID string

	// ReplID names the stream of writes that the node has, or the primary that it follows. Another
	// one is begun with each promotion.
	ReplID string
	Keys   int64

	Primary   bool
	PrimaryID string // whose replica it is
	Epoch     int64  // of its configuration; of its primary's, if it is a replica
	Slots     []audit.SlotRange
	Importing []audit.SlotRange // on their way here: their keys are, in part, here already
}

// missesDown is after how many looks without an answer a node is down: on a busy machine
// an answer can be late once. One that refuses connections is down at once.
const missesDown = 2

// down says that the node is down.
func (n Node) down() bool { return n.Missed >= missesDown }

// owned returns the slots that a node owns in the joint picture.
func (l *Look) owned(id string) []audit.SlotRange {
	return ranges(func(slot int) bool { return l.Owners[slot] == id })
}

// stale returns the slots that the node believes to own, or did when it answered last, and that
// are another's.
func (l *Look) stale(id string) []audit.SlotRange {
	n := l.Nodes[id]
	if !n.Primary {
		return nil
	}
	return ranges(func(slot int) bool {
		return l.Owners[slot] != id && l.Owners[slot] != "" && holds(n.Slots, slot)
	})
}

// epoch returns a node's config epoch, which other views can know before it says so itself.
func (l *Look) epoch(id string) int64 {
	epoch := l.Nodes[id].Epoch
	for slot, owner := range l.Owners {
		if owner == id {
			epoch = max(epoch, l.epochs[slot])
		}
	}
	return epoch
}

// ids returns the names of the nodes, in order of their addresses.
func (l *Look) ids() []string {
	return slices.SortedFunc(maps.Keys(l.Nodes), func(a, b string) int {
		return cmp.Or(cmp.Compare(l.Nodes[a].Addr, l.Nodes[b].Addr), cmp.Compare(a, b))
	})
}

// addr returns the address of a node, or "" of none.
func (l *Look) addr(id string) string { return l.Nodes[id].Addr }

// ranges joins the slots for which in reports true.
func ranges(in func(slot int) bool) []audit.SlotRange {
	var all []audit.SlotRange
	for slot := range keys.Slots {
		switch {
		case !in(slot):
		case len(all) > 0 && all[len(all)-1].Last == slot-1:
			all[len(all)-1].Last = slot
		default:
			all = append(all, audit.SlotRange{First: slot, Last: slot})
		}
	}
	return all
}

func holds(all []audit.SlotRange, slot int) bool {
	return slices.ContainsFunc(all, func(r audit.SlotRange) bool { return r.First <= slot && slot <= r.Last })
}

// union joins sets of slots.
func union(sets ...[]audit.SlotRange) []audit.SlotRange {
	if !slices.ContainsFunc(sets, func(s []audit.SlotRange) bool { return len(s) > 0 }) {
		return nil
	}
	return ranges(func(slot int) bool {
		return slices.ContainsFunc(sets, func(s []audit.SlotRange) bool { return holds(s, slot) })
	})
}
