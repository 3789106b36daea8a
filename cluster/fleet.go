package cluster

import (
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// unusedFor is how long a connection may lie idle before the next new node has it
// closed: nodes come and go, and nobody says when one has gone for good.
const unusedFor = 10 * time.Minute

// A fleet holds the lanes to all nodes that there ever were, by address.
type fleet struct {
	patience time.Duration // of its lanes

	mu     sync.Mutex // held to change the map, which is replaced as a whole
	closed bool
	lanes  atomic.Pointer[map[string]*lane]
}

func newFleet(patience time.Duration) *fleet {
	f := &fleet{patience: patience}
	f.lanes.Store(&map[string]*lane{})
	return f
}

// of returns the lane to a node that go-redis knows.
func (f *fleet) of(node *redis.Client) *lane {
	return f.at(node.Options().Addr, node.Options())
}

// known returns the lane to an address, or nil if there is none yet.
func (f *fleet) known(addr string) *lane { return (*f.lanes.Load())[addr] }

// at returns the lane to an address, to be dialled and greeted as the options say.
func (f *fleet) at(addr string, options *redis.Options) *lane {
	if l := f.known(addr); l != nil {
		return l
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if l := f.known(addr); l != nil {
		return l
	}
	lanes := maps.Clone(*f.lanes.Load())
	for _, l := range lanes {
		l.retire(time.Now().Add(-unusedFor))
	}
	l := newLane(newOpener(options, addr), f.patience)
	if f.closed {
		l.close()
	}
	lanes[addr] = l
	f.lanes.Store(&lanes)
	return l
}

// close ends all lanes, and those to come.
func (f *fleet) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	for _, l := range *f.lanes.Load() {
		l.close()
	}
}
