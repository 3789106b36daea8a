package watch

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/slotlimit/slotlimit/cluster"
	"github.com/slotlimit/slotlimit/loadtest/audit"
)

// ErrBlind means that no node of the cluster answered the first look, or that the
// client is not one of a cluster.
var ErrBlind = errors.New("watch: no node answers")

// A Watcher looks at a cluster again and again. [Start] makes one. It is safe for
// concurrent use.
type Watcher struct {
	asker  *asker
	notice func(audit.Event)
	end    context.CancelFunc
	done   chan struct{}

	mu     sync.Mutex
	look   *Look
	events []audit.Event
	plans  []*Plan
}

// Start takes a first look, and then one at each interval until [Watcher.Stop], or until ctx ends.
// It uses the client's addresses and credentials, and connections of its own.
//
// notice, if not nil, gets each event when it is noticed, from one goroutine at a time. It must
// not call Stop.
func Start(ctx context.Context, client *cluster.Client, every time.Duration, notice func(audit.Event)) (*Watcher, error) {
	nodes, ok := client.UniversalClient.(*redis.ClusterClient)
	if !ok {
		return nil, ErrBlind
	}
	topology, err := client.Topology(ctx)
	if err != nil {
		return nil, errors.Join(ErrBlind, err)
	}
	w := &Watcher{asker: newAsker(nodes.Options(), topology), notice: notice, done: make(chan struct{})}
	w.look = w.asker.look(ctx, nil)
	if !slices.ContainsFunc(w.look.ids(), func(id string) bool { return w.look.Nodes[id].Missed == 0 }) {
		w.asker.close()
		return nil, ErrBlind
	}
	ctx, w.end = context.WithCancel(ctx)
	go w.run(ctx, every)
	return w, nil
}

func (w *Watcher) run(ctx context.Context, every time.Duration) {
	defer close(w.done)
	ticks := time.NewTicker(every)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
			w.step(ctx)
		}
	}
}

// step takes a look, and the events that it shows.
func (w *Watcher) step(ctx context.Context) {
	before := w.look // only steps write it, and they come one after the other
	after := w.asker.look(ctx, before)
	if ctx.Err() != nil {
		return // broken off, and so nothing that a node did
	}
	w.mu.Lock()
	w.prolong(before, after)
	fresh := Changes(before, after)
	w.events = append(w.events, fresh...)
	w.look = after
	for i := range fresh {
		fresh[i].Graceful = fresh[i].Graceful || w.planned(fresh[i])
	}
	w.mu.Unlock()
	for _, e := range fresh {
		if w.notice != nil {
			w.notice(e)
		}
	}
}

// prolong lets promotions last while the former primary answers and has not learnt of them.
func (w *Watcher) prolong(before, after *Look) {
	for id, n := range before.Nodes {
		if n.Missed > 0 || len(before.stale(id)) == 0 {
			continue
		}
		for i, e := range slices.Backward(w.events) {
			if e.Kind == audit.Promotion && e.Was == n.Addr {
				w.events[i].To = after.To
				break
			}
		}
	}
}

// Events returns what was noticed so far, in that order.
func (w *Watcher) Events() []audit.Event {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := slices.Clone(w.events)
	for i := range all {
		all[i].Graceful = all[i].Graceful || w.planned(all[i])
	}
	return all
}

// Stop takes a last look, ends the watch, and returns all events. Call it after the final pass over
// the counters, and once.
func (w *Watcher) Stop() []audit.Event {
	w.end()
	<-w.done
	w.step(context.Background()) // bounded by the time that each node has
	w.asker.close()
	return w.Events()
}

// A Plan is a graceful failover that the run itself makes: [Watcher.Plan].
type Plan struct {
	watcher  *Watcher
	node     string
	from, to time.Time // to is zero until Done
	dropped  bool
}

// Plan announces that this replica, named by its address in the topology, is about to be asked to
// take over by CLUSTER FAILOVER without FORCE. Its promotion, if it happens before [Plan.Done], is Graceful.
func (w *Watcher) Plan(replica string) *Plan {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := &Plan{watcher: w, node: replica, from: time.Now()}
	w.plans = append(w.plans, p)
	return p
}

// Done says that the replica is the primary now. A plan that is never done covers all that follows.
func (p *Plan) Done() {
	p.watcher.mu.Lock()
	defer p.watcher.mu.Unlock()
	p.to = time.Now()
}

// Drop says that it did not come to it: whatever promotes the replica is not the plan's doing.
func (p *Plan) Drop() {
	p.watcher.mu.Lock()
	defer p.watcher.mu.Unlock()
	p.dropped = true
}

// planned says whether a promotion is one that was announced. The lock is held.
func (w *Watcher) planned(e audit.Event) bool {
	return e.Kind == audit.Promotion && slices.ContainsFunc(w.plans, func(p *Plan) bool {
		return !p.dropped && p.node == e.Node && !e.To.Before(p.from) && (p.to.IsZero() || !e.From.After(p.to))
	})
}
