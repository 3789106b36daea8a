package audit

import (
	"time"

	"github.com/slotlimit/slotlimit/keys"
)

// A Promise is what the limiter under test was set up to do.
type Promise struct {
	Layout keys.Layout   // how its Redis keys are named
	Rate   int64         // attempts allowed per user and window
	Period time.Duration // length of a window, whole milliseconds
	Grace  time.Duration // how long a counter outlives its window, whole milliseconds
}

// windowEnd returns when a window ends, in ms of Unix time.
func (p Promise) windowEnd(window int64) int64 {
	return (window + 1) * p.Period.Milliseconds()
}

// A Told is what callers were told of one Redis key.
type Told struct {
	Key    string
	User   string
	Window int64

	// Known says that Window comes from a decision. A key of which callers only heard
	// that the reply was lost has its window in its name, or nowhere.
	Known bool

	Acknowledged int64 // decisions
	Allowed      int64 // of these, how many were allowed
	Ambiguous    int64 // replies lost: counted or not

	// First is when the first of the decisions was asked for, by the load test's clock; zero if
	// there is none, or nobody knows. What happened to the cluster before that took nothing from
	// this counter.
	First time.Time

	// Causes says how the replies were lost. Those of Ambiguous that it leaves out have CauseOther.
	Causes Causes
}

// Denied returns how many of the decisions were denials.
func (t Told) Denied() int64 { return t.Acknowledged - t.Allowed }

// A Clash is a Redis key that was said to count for two users or two windows.
type Clash struct {
	Key                 string
	User, OtherUser     string
	Window, OtherWindow int64
}

// A Shard is a primary and the hash slots that it owns.
type Shard struct {
	Node  string // address of the primary
	Slots []SlotRange
}

// A SlotRange is the hash slots from First to Last, both included.
type SlotRange struct {
	First int `json:"first"`
	Last  int `json:"last"`
}

// SlotCount returns how many hash slots the shard owns.
func (s Shard) SlotCount() int {
	n := 0
	for _, r := range s.Slots {
		n += r.Last - r.First + 1
	}
	return n
}

// owner returns the index of the shard that owns the slot, or -1.
func owner(shards []Shard, slot int) int {
	for i, s := range shards {
		for _, r := range s.Slots {
			if r.First <= slot && slot <= r.Last {
				return i
			}
		}
	}
	return -1
}

// A Counter is one Redis key as a node holds it.
type Counter struct {
	Key   string
	Value int64

	// Expires is when the key expires by the node's clock, in ms of Unix time; 0 if never.
	Expires int64

	// Unread says why there is no value: the node does not serve the key's slot, or
	// the key holds no integer. Empty if Value and Expires were read.
	Unread string

	// Arriving says that the key is where its slot is being moved to: not yet the owner, and
	// yet the right place.
	Arriving bool
}

// A Visit is what one pass found on one primary.
type Visit struct {
	Node     string // address
	From, To int64  // the node's clock before and after the scan, ms of Unix time
	Counters []Counter

	// Slots holds the slots of a sample of keys, as the node computes them.
	Slots map[string]int
}

// A Pass is one look at all primaries.
type Pass struct {
	Visits []Visit

	// To is when the pass was done, by the load test's clock: what happened to the cluster after
	// that took nothing from what it found. If zero, the nodes' clocks have to do.
	To time.Time

	// Shards is who owned what. Steady says that it was the same before and after the
	// pass: only then can a key in the wrong place be told from one that was moving.
	Shards []Shard
	Steady bool
}

// A History is all that [Reconcile] needs.
type History struct {
	Promise Promise
	Sent    int64   // requests that were started
	Account Account // what callers were told, from [Ledger.Account]
	Book    *Book   // what the nodes hold

	// Events are what happened to the cluster, in any order, and whoever caused it. A loss is
	// explained by them or not at all.
	Events []Event

	// Durable says that a count was acknowledged only when a replica had it, so that no
	// loss is excused.
	Durable bool
}
