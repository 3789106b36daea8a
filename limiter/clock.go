package limiter

import (
	"maps"
	"sync"
	"sync/atomic"
	"time"
)

// A nodeClock guesses what the clock of a node says when a call that is sent now
// runs there. A guess never decides anything: the node checks it, and a wrong one
// costs a second trip.
type nodeClock struct {
	ahead atomic.Int64 // ms from sending, by this process's clock, to running, by the node's
}

// at returns the guess for a call sent at the time, in ms of Unix time.
func (c *nodeClock) at(sent time.Time) int64 { return sent.UnixMilli() + c.ahead.Load() }

// confirm learns from a reply to a good guess: a call sent at the time ran when the
// node's clock said ran, in ms of Unix time.
//
// Delays on the way only ever add to the difference, so a smaller one is nearer
// the truth and is taken as it is; a larger one may be a delay or a clock that
// drifts, and counts for a sixteenth.
func (c *nodeClock) confirm(sent time.Time, ran int64) {
	ahead, was := ran-sent.UnixMilli(), c.ahead.Load()
	if ahead > was {
		ahead = was + (ahead-was)/16
	}
	if ahead != was {
		c.ahead.Store(ahead)
	}
}

// correct learns from a reply that refused a guess.
func (c *nodeClock) correct(sent time.Time, ran int64) { c.ahead.Store(ran - sent.UnixMilli()) }

// nodeClocks holds a clock for each node, by address: nodes disagree, and a user
// who moves to another node moves to another clock. It grows with the nodes that
// were ever primaries, not with users.
type nodeClocks struct {
	mu    sync.Mutex // held to add a node
	nodes atomic.Pointer[map[string]*nodeClock]
}

func (c *nodeClocks) of(addr string) *nodeClock {
	if nodes := c.nodes.Load(); nodes != nil {
		if clock, ok := (*nodes)[addr]; ok {
			return clock
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	grown := map[string]*nodeClock{}
	if nodes := c.nodes.Load(); nodes != nil {
		if clock, ok := (*nodes)[addr]; ok {
			return clock
		}
		maps.Copy(grown, *nodes)
	}
	clock := new(nodeClock)
	grown[addr] = clock
	c.nodes.Store(&grown)
	return clock
}
