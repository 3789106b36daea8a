package faults

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// An attempt is a fault in the making.
type attempt struct {
	*Plan
	deed   *Deed
	number int             // in the order of times
	ctx    context.Context // for the commands
	hold   context.Context // ends when nothing has to be kept up any longer
}

func (a *attempt) make() {
	began := time.Now()
	a.mu.Lock()
	a.deed.Began = began
	a.mu.Unlock()
	err := kinds[a.deed.Fault.Name].run(a)
	if err != nil {
		a.step("failed: %v", strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	a.mu.Lock()
	a.deed.Err = err
	outage := a.deed.Outage
	a.mu.Unlock()
	if outage != nil {
		outage.Over(time.Now())
	}
}

// step writes a line of the timeline.
func (a *attempt) step(format string, args ...any) {
	s := Step{time.Now(), fmt.Sprintf(format, args...)}
	a.mu.Lock()
	a.deed.Steps = append(a.deed.Steps, s)
	a.mu.Unlock()
	a.cfg.Tell(s.At, a.deed.Fault.Name+": "+s.Text)
}

// begin names what is hit, and starts to watch it.
func (a *attempt) begin(shard, node string, slots []SlotRange) *Outage {
	now := time.Now()
	o := a.record.Begin(now, slots)
	a.mu.Lock()
	defer a.mu.Unlock()
	d := a.deed
	d.Began, d.Shard, d.Node, d.Slots, d.Outage = now, shard, node, slots, o
	return o
}

// everywhere begins a fault that is made to all nodes.
func (a *attempt) everywhere() *Outage {
	var slots []SlotRange
	for _, s := range a.shards {
		slots = append(slots, s.Slots...)
	}
	return a.begin("", "", slots)
}

// A target is a primary, and a replica that could take over from it.
type target struct {
	state
	replica state
}

// targets returns the primaries that serve slots and answer, from the one whose turn it is.
func (a *attempt) targets(withReplica bool) ([]target, error) {
	states, err := a.look(a.ctx)
	if err != nil {
		return nil, err
	}
	var all []target
	turn := (a.cfg.Seed + uint64(a.number)) % uint64(len(a.shards))
	for i := range a.shards {
		name := a.shards[(uint64(i)+turn)%uint64(len(a.shards))].Name
		for _, s := range states {
			if s.shard != name || !s.primary || len(s.slots) == 0 || s.failing || a.damaged(s.Node) {
				continue
			}
			t := target{state: s}
			for _, r := range states {
				if r.of == s.ID && !r.primary && !r.failing && !a.damaged(r.Node) {
					t.replica = r
				}
			}
			if !withReplica || t.replica.Node != nil {
				all = append(all, t)
			}
		}
	}
	if len(all) == 0 {
		return nil, errors.New("no primary is left that this could be done to")
	}
	return all, nil
}

// target is the one whose turn it is.
func (a *attempt) target() (target, error) {
	all, err := a.targets(needsReplica(a.deed.Fault.Name))
	if err != nil {
		return target{}, err
	}
	return all[0], nil
}

// orderly chooses shards for what an operator does to a cluster that is sound, and takes them
// until done is called: nobody fails a shard over while its slots move, since a replica that has not
// heard of a slot's new owner takes it away from there, with what was counted. If too few are
// free, it waits.
func (a *attempt) orderly(n int, withReplica bool) (chosen []target, done func(), err error) {
	waited := false
	err = until(a.ctx, func() error {
		all, err := a.targets(withReplica)
		if err != nil {
			return err
		}
		if len(all) < n {
			return fmt.Errorf("this needs %d primaries, and there are %d", n, len(all))
		}
		if chosen, done = a.take(all, n); chosen != nil {
			return nil
		}
		if a.hold.Err() != nil {
			return nil
		}
		if !waited {
			a.step("waits: what is under way in its shard comes first")
			waited = true
		}
		return errors.New("too few shards are free for it")
	})
	if err == nil && chosen == nil {
		err = errors.New("the load had ended before its shard was free")
	}
	return chosen, done, err
}

// take takes the first n shards that are free, all or none.
func (p *Plan) take(all []target, n int) ([]target, func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	free := slices.DeleteFunc(all, func(t target) bool { return p.taken[t.shard] })
	if len(free) < n {
		return nil, nil
	}
	free = free[:n]
	for _, t := range free {
		p.taken[t.shard] = true
	}
	return free, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, t := range free {
			delete(p.taken, t.shard)
		}
	}
}

// failoverTime is how long a node goes on with a failover that it was asked for.
const failoverTime = 5 * time.Second

func (a *attempt) failover() error {
	chosen, done, err := a.orderly(1, true)
	if err != nil {
		return err
	}
	defer done()
	t := chosen[0]
	o := a.begin(t.shard, t.Addr, t.slots)
	announced := a.cfg.Announce(t.replica.Addr)
	var asked time.Time
	ctx, cancel := context.WithTimeout(a.ctx, promotionTimeout)
	defer cancel()
	err = until(ctx, func() error {
		info, err := t.replica.client.Info(ctx, "replication").Result()
		if err != nil {
			return err
		}
		if fields(info)["role"] == "master" {
			return nil
		}
		if time.Since(asked) < failoverTime {
			return fmt.Errorf("%s is a replica still", t.replica.Addr)
		}
		if err := t.replica.client.ClusterFailover(ctx).Err(); err != nil {
			return err
		}
		if asked.IsZero() {
			a.step("CLUSTER FAILOVER on %s, the replica of %s", t.replica.Addr, t.Addr)
		}
		asked = time.Now()
		return errors.New("it has only just been asked")
	})
	// Once it was asked, it may still come to it, and gracefully.
	announced(err == nil || !asked.IsZero())
	if err != nil {
		return err
	}
	o.Effective(time.Now())
	a.step("%s is the primary", t.replica.Addr)
	return nil
}

func (a *attempt) takeover() error {
	t, err := a.target()
	if err != nil {
		return err
	}
	o := a.begin(t.shard, t.Addr, t.slots)
	if err := t.replica.client.Do(a.ctx, "cluster", "failover", "takeover").Err(); err != nil {
		return err
	}
	o.Effective(time.Now())
	a.step("CLUSTER FAILOVER TAKEOVER on %s, the replica of %s", t.replica.Addr, t.Addr)
	return nil
}

// crash ends the primary, for kill and restart.
func (a *attempt) crash(t target, o *Outage) error {
	a.damage(t.Node, killed)
	if err := t.machine.Kill(a.ctx); err != nil {
		a.damage(t.Node, 0)
		return err
	}
	o.Effective(time.Now())
	a.step("killed %s (%v)", t.Addr, t.machine)
	return nil
}

func (a *attempt) kill() error {
	t, err := a.target()
	if err != nil {
		return err
	}
	o := a.begin(t.shard, t.Addr, t.slots)
	if err := a.crash(t, o); err != nil {
		return err
	}
	if a.cfg.Promote != nil {
		sleep(a.hold, time.Second)
		if err := a.cfg.Promote(a.ctx, t.replica.Addr); err != nil {
			return err
		}
	}
	a.awaitPromotion(t)
	return nil
}

// awaitPromotion says when another node has taken over, or that none has.
func (a *attempt) awaitPromotion(t target) {
	ctx, cancel := context.WithTimeout(a.ctx, promotionTimeout)
	defer cancel()
	err := until(ctx, func() error {
		if a.hold.Err() != nil {
			return nil
		}
		return a.replaced(ctx, t.Node)
	})
	switch {
	case a.hold.Err() != nil: // the load has ended: Restore sees to the rest
	case err != nil:
		a.step("nobody has taken over from %s in %v", t.Addr, promotionTimeout)
	default:
		a.step("%s is replaced", t.Addr)
	}
}

func (a *attempt) restart() error {
	t, err := a.target()
	if err != nil {
		return err
	}
	o := a.begin(t.shard, t.Addr, t.slots)
	// An engine of containers may take longer to start one than a replica waits, and the fault
	// is that it is back before.
	held := t.replica.Node != nil && hold(a.ctx, t.replica.Node, "yes") == nil
	if held {
		a.step("%s is told not to take over until then", t.replica.Addr)
		defer a.release(t)
	}
	if err := a.crash(t, o); err != nil {
		return err
	}
	if err := t.machine.Start(a.ctx); err != nil {
		return err
	}
	a.damage(t.Node, 0)
	a.step("started %s again", t.Addr)
	return nil
}

// hold keeps a replica from taking over, or with "no" lets it again.
func hold(ctx context.Context, replica *Node, yes string) error {
	return replica.client.ConfigSet(ctx, "cluster-replica-no-failover", yes).Err()
}

// release lets a replica take over again, once it sees its primary.
func (a *attempt) release(t target) {
	ctx, cancel := context.WithTimeout(a.ctx, promotionTimeout)
	defer cancel()
	_ = until(ctx, func() error {
		states, err := look(ctx, a.nodes, t.replica.Node)
		if err != nil {
			return err
		}
		for _, s := range states {
			if s.Node == t.Node && s.failing {
				return fmt.Errorf("%s takes %s to have failed", t.replica.Addr, t.Addr)
			}
		}
		return nil
	})
	if err := hold(a.ctx, t.replica.Node, "no"); err != nil {
		a.step("%s is still told not to take over: %v", t.replica.Addr, err)
	}
}

func (a *attempt) pause() error {
	return a.suspend("paused", paused, Machine.Pause, "it runs on", Machine.Resume)
}

func (a *attempt) partition() error {
	return a.suspend("cut off from its peers", cut, Machine.Cut, "joined again", Machine.Join)
}

// suspend keeps a primary in a state for a time.
func (a *attempt) suspend(done string, d damage, do func(Machine, context.Context) error, undone string, undo func(Machine, context.Context) error) error {
	t, err := a.target()
	if err != nil {
		return err
	}
	o := a.begin(t.shard, t.Addr, t.slots)
	a.damage(t.Node, d)
	if err := do(t.machine, a.ctx); err != nil {
		a.damage(t.Node, 0)
		return err
	}
	o.Effective(time.Now())
	a.step("%s %s (%v) for %v", t.Addr, done, t.machine, a.deed.Fault.For)
	var wg sync.WaitGroup
	stop, cancel := context.WithCancel(a.ctx)
	wg.Go(func() {
		if until(stop, func() error { return a.replaced(stop, t.Node) }) == nil {
			a.step("%s is replaced", t.Addr)
		}
	})
	sleep(a.hold, a.deed.Fault.For)
	cancel()
	wg.Wait()
	if err := undo(t.machine, a.ctx); err != nil {
		return err // and Restore tries again
	}
	a.damage(t.Node, 0)
	a.step("%s: %s", t.Addr, undone)
	return nil
}

// flushEvery is how often the scripts are flushed again.
const flushEvery = 100 * time.Millisecond

func (a *attempt) flush() error {
	o := a.everywhere()
	o.Effective(time.Now())
	a.step("SCRIPT FLUSH on all nodes, again and again for %v", a.deed.Fault.For)
	times, end := 0, time.Now().Add(a.deed.Fault.For)
	for {
		if err := a.each(func(n *Node) error { return n.client.ScriptFlush(a.ctx).Err() }); err != nil {
			return err
		}
		times++
		if !sleep(a.hold, flushEvery) || time.Now().After(end) {
			break
		}
	}
	a.step("flushed %d times", times)
	return nil
}

// each does something to every node that is not broken, at the same time.
func (a *attempt) each(do func(*Node) error) error {
	var mu sync.Mutex
	var errs []error
	var wg sync.WaitGroup
	for _, n := range a.nodes {
		if a.damaged(n) {
			continue
		}
		wg.Go(func() {
			if err := do(n); err != nil && !a.damaged(n) { // broken by another fault meanwhile
				mu.Lock()
				defer mu.Unlock()
				errs = append(errs, fmt.Errorf("%s: %w", n.Addr, err))
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

func (a *attempt) clientPause() error {
	t, err := a.target()
	if err != nil {
		return err
	}
	o := a.begin(t.shard, t.Addr, t.slots)
	if err := t.client.Do(a.ctx, "client", "pause", a.deed.Fault.For.Milliseconds()).Err(); err != nil {
		return err
	}
	o.Effective(time.Now())
	a.step("CLIENT PAUSE on %s for %v", t.Addr, a.deed.Fault.For)
	sleep(a.hold, a.deed.Fault.For)
	return nil
}

func (a *attempt) disconnect() error {
	o := a.everywhere()
	err := a.each(func(n *Node) error {
		return n.client.ClientKillByFilter(a.ctx, "TYPE", "normal", "SKIPME", "yes").Err()
	})
	if err != nil {
		return err
	}
	o.Effective(time.Now())
	a.step("CLIENT KILL TYPE normal on all nodes")
	return nil
}
