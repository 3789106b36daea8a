package faults

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/slotlimit/slotlimit/cluster"
)

// Config is what [Prepare] needs.
type Config struct {
	Client *cluster.Client
	Faults []Fault
	Seed   uint64 // chooses the first target; the next fault takes the next shard

	// Machine finds what a node runs on. Nil means FindMachine.
	Machine func(context.Context, *Node) (Machine, error)

	// Promote has a replica take over from its dead primary, where the cluster does not
	// do that by itself; nil where it does.
	Promote func(ctx context.Context, replica string) error

	// Announce is called before a failover that loses nothing, with the replica that is to take
	// over, so that whoever watches the cluster knows it; and what it returns when that has come
	// true or has not. Nil: nobody watches.
	Announce func(replica string) (done func(made bool))

	// Tell is called with each line of the timeline when it is written; nil: nobody is told.
	Tell func(at time.Time, text string)
}

// A Plan is faults that can be made. [Prepare] makes one; it must be closed.
type Plan struct {
	cfg    Config
	nodes  map[string]*Node // by id
	shards []Shard
	record *Record

	mu     sync.Mutex
	deeds  []*Deed
	broken map[*Node]damage // what Restore has to mend
	taken  map[string]bool  // shards that an orderly fault has to itself, by name
	moves  []*move          // slots that are on their way
}

// A damage is what a node suffers from.
type damage int

const (
	killed damage = iota + 1
	paused
	cut
)

// A Deed is a fault that was made, or could not be.
type Deed struct {
	Fault Fault
	Began time.Time
	Shard string      // that it was made to, by its name; "" if to all
	Node  string      // likewise
	Slots []SlotRange // that it may keep from being served
	Steps []Step
	Err   error // it could not be made, or not in full

	Outage *Outage // nil if it was not begun
}

// A Step is a line of the timeline.
type Step struct {
	At   time.Time
	Text string
}

// Prepare finds out how to make the faults. It returns an error if one of them cannot be
// made here, and then nothing is left to close.
func Prepare(ctx context.Context, cfg Config) (_ *Plan, err error) {
	if cfg.Machine == nil {
		cfg.Machine = FindMachine
	}
	if cfg.Announce == nil {
		cfg.Announce = func(string) func(bool) { return func(bool) {} }
	}
	if cfg.Tell == nil {
		cfg.Tell = func(time.Time, string) {}
	}
	p := &Plan{cfg: cfg, broken: map[*Node]damage{}, taken: map[string]bool{}}
	if p.nodes, err = members(ctx, cfg.Client); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			p.Close()
		}
	}()
	states, err := p.look(ctx)
	if err != nil {
		return nil, err
	}
	for _, s := range states {
		s.Bus = s.bus
		if s.primary && len(s.slots) > 0 {
			p.shards = append(p.shards, Shard{Name: s.Addr, Slots: s.slots})
		}
	}
	for i, f := range cfg.Faults {
		if err := p.possible(ctx, f, states); err != nil {
			return nil, fmt.Errorf("-fault %v: %w", f, err)
		}
		p.deeds = append(p.deeds, &Deed{Fault: cfg.Faults[i]})
	}
	slices.SortStableFunc(p.deeds, func(a, b *Deed) int { return cmp.Compare(a.Fault.At, b.Fault.At) })
	return p, nil
}

// possible returns an error if a fault cannot be made on this cluster.
func (p *Plan) possible(ctx context.Context, f Fault, states []state) error {
	k := kinds[f.Name]
	if len(p.shards) < 2 && (f.Name == "reshard" || f.Name == "migrate") {
		return errors.New("there is no second primary to move slots to")
	}
	if needsReplica(f.Name) && !slices.ContainsFunc(states, func(s state) bool { return !s.primary && !s.failing }) {
		return errors.New("no primary has a replica that could take over")
	}
	if !k.machine {
		return nil
	}
	// All nodes: who is a primary when its time comes, nobody knows.
	for _, n := range p.nodes {
		if n.machine == nil {
			var err error
			if n.machine, err = p.cfg.Machine(ctx, n); err != nil {
				return err
			}
		}
		if k.again {
			if err := n.machine.CanStart(ctx); err != nil {
				return fmt.Errorf("%s could not be started again: %w", n.Addr, err)
			}
		}
		if k.network {
			if err := n.machine.CanCut(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// needsReplica says whether a fault is for shards that have someone to take over.
func needsReplica(name string) bool {
	switch name {
	case "failover", "takeover", "kill", "pause", "partition":
		return true
	}
	return false
}

// Shards returns the shards as they are before the load.
func (p *Plan) Shards() []Shard { return p.shards }

// Close closes the connections to the nodes.
func (p *Plan) Close() error {
	var errs []error
	for _, n := range p.nodes {
		errs = append(errs, n.client.Close())
	}
	return errors.Join(errs...)
}

// Run makes each fault at its time after began, and returns when all are done. A fault whose
// time comes after ctx has ended is not made; one under way then is shortened. The record is that of the load.
func (p *Plan) Run(ctx context.Context, began time.Time, record *Record) {
	p.record = record
	var wg sync.WaitGroup
	for i, d := range p.deeds {
		wg.Go(func() {
			if !sleep(ctx, time.Until(began.Add(d.Fault.At))) {
				return
			}
			a := &attempt{Plan: p, deed: d, number: i, hold: ctx}
			var cancel context.CancelFunc
			// What was begun is ended, if it can be: not with the load.
			a.ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), d.Fault.For+attemptTimeout)
			defer cancel()
			a.make()
		})
	}
	wg.Wait()
}

// attemptTimeout is how long a fault may take, beyond the time for which it is kept up.
const attemptTimeout = 60 * time.Second

// Deeds returns what was made of the faults so far, in the order of their times.
func (p *Plan) Deeds() []Deed {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := make([]Deed, len(p.deeds))
	for i, d := range p.deeds {
		all[i] = *d
		all[i].Steps = slices.Clone(d.Steps)
	}
	return all
}

// look asks the nodes that are not known to be broken for the state of all, one after
// the other until one answers.
func (p *Plan) look(ctx context.Context) ([]state, error) {
	var errs []error
	for _, id := range slices.Sorted(maps.Keys(p.nodes)) {
		n := p.nodes[id]
		if p.damaged(n) {
			continue
		}
		states, err := look(ctx, p.nodes, n)
		if err == nil {
			return states, nil
		}
		errs = append(errs, fmt.Errorf("%s: %w", n.Addr, err))
	}
	return nil, errors.Join(errs...)
}

func (p *Plan) damaged(n *Node) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.broken[n] != 0
}

func (p *Plan) damage(n *Node, d damage) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if d == 0 {
		delete(p.broken, n)
		return
	}
	p.broken[n] = d
}

// sleep waits, and reports false if ctx ends before.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
