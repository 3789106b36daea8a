package clustertest

import (
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// A Request is a command as one node received it from a client; commands that a
// script runs are none.
type Request struct {
	Node    int      // 0 to Nodes-1
	Command string   // upper case
	Args    []string // the command's name included, as sent

	keyed bool
}

// A Match says which requests a fault is for. It is called while the node holds
// its locks, by several goroutines at once: it must be quick and must not call the
// cluster. A nil Match takes every command that names a key, on any node, so that
// the handshakes of connections and the questions about the topology go on.
type Match func(Request) bool

// On matches the commands with these names, in any case, on one node or on
// [AllNodes]; without names all that name a key.
func On(node int, commands ...string) Match {
	names := make([]string, len(commands))
	for i, name := range commands {
		names[i] = strings.ToUpper(name)
	}
	return func(r Request) bool {
		if node != AllNodes && node != r.Node {
			return false
		}
		return slices.Contains(names, r.Command) || len(names) == 0 && r.keyed
	}
}

// A Fault is a fault that was set up, to count and to end it.
type Fault struct {
	match    Match
	budget   int64  // how often it may still hit; under 0: any number of times
	message  string // an error reply instead of running
	silent   bool
	fraction float64
	random   *rand.Rand

	owner *faults
	hits  atomic.Int64
}

// Hits returns how often the fault has struck: replies lost or errors answered.
func (f *Fault) Hits() int { return int(f.hits.Load()) }

// Stop ends the fault. What it has counted stays.
func (f *Fault) Stop() {
	f.owner.mu.Lock()
	defer f.owner.mu.Unlock()
	f.owner.remove(f)
}

type faults struct {
	count atomic.Int64 // of both lists, so that a cluster without faults takes no lock
	mu    sync.Mutex
	list  []*Fault
}

func (f *faults) add(fault *Fault) *Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	fault.owner = f
	f.list = append(f.list, fault)
	f.count.Add(1)
	return fault
}

func (f *faults) remove(fault *Fault) {
	if i := slices.Index(f.list, fault); i >= 0 {
		f.list = slices.Delete(f.list, i, i+1)
		f.count.Add(-1)
	}
}

// strike returns the first fault of a kind that hits this request, and counts it.
func (f *faults) strike(r Request, errorReply bool) *Fault {
	if f.count.Load() == 0 {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, fault := range f.list {
		if (fault.message != "") != errorReply || !fault.strikes(r) {
			continue
		}
		fault.hits.Add(1)
		if fault.budget > 0 {
			fault.budget--
			if fault.budget == 0 {
				f.remove(fault)
			}
		}
		return fault
	}
	return nil
}

// strikes says whether the fault strikes this one request.
func (f *Fault) strikes(r Request) bool {
	if f.match == nil && !r.keyed || f.match != nil && !f.match(r) {
		return false
	}
	return f.random == nil || f.random.Float64() < f.fraction
}

func (f *faults) error(r Request) (string, bool) {
	if fault := f.strike(r, true); fault != nil {
		return fault.message, true
	}
	return "", false
}

func (f *faults) loss(r Request) *Fault { return f.strike(r, false) }

// Fail lets the next n requests that match be answered with an error without
// running, n under 0: all of them until [Fault.Stop]. message is the reply without
// its leading "-", such as "LOADING Redis is loading the dataset in memory" or
// "TRYAGAIN Multiple keys request during rehashing of slot". The error comes before
// every check of the node, so it hides a MOVED.
func (c *Cluster) Fail(match Match, n int, message string) *Fault {
	if n == 0 {
		return &Fault{owner: &c.faults}
	}
	return c.faults.add(&Fault{match: match, budget: int64(n), message: message})
}

// A Loss says how a client notices that its reply is lost.
type Loss int

const (
	// Cut closes the connection. What the client has sent behind the command on this
	// connection does not run.
	Cut Loss = iota
	// Silence leaves the connection open and dumb: nothing is read from it any more
	// and nothing is answered, until the client closes it or the node dies.
	Silence
)

// LoseReplies lets the next n requests that match run, once each, and swallows
// their replies; n under 0: all until [Fault.Stop]. Only requests that the node
// runs count: one that is answered with MOVED, ASK or an injected error has lost
// nothing. Replies to what the client had sent before still arrive.
func (c *Cluster) LoseReplies(match Match, n int, how Loss) *Fault {
	if n == 0 {
		return &Fault{owner: &c.faults}
	}
	return c.faults.add(&Fault{match: match, budget: int64(n), silent: how == Silence})
}

// LoseFraction is [Cluster.LoseReplies] for a share of the requests that match, 0
// to 1, until [Fault.Stop]. Equal seeds lose the same ones of a sequence of
// requests; with several clients at once the sequence itself is chance.
func (c *Cluster) LoseFraction(match Match, share float64, seed uint64, how Loss) *Fault {
	return c.faults.add(&Fault{
		match: match, budget: -1, silent: how == Silence,
		fraction: share, random: rand.New(rand.NewPCG(seed, seed)),
	})
}
