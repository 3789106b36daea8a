package limiter

import (
	"context"
	"sync"

	"github.com/slotlimit/slotlimit/cluster"
)

// An Attempt is one item of [Limiter.AllowMany].
type Attempt struct {
	User string

	// N is the cost. 0 looks only, as [Limiter.Peek] does.
	N int64
}

// A Verdict is what [Limiter.AllowMany] says of one item: the decision, or in Err why
// there is none.
type Verdict struct {
	Result
	Err error // as of [Limiter.AllowN]
}

// AllowMany decides on many attempts at once, of one user or of many, and returns a
// verdict for each, in their order. Each is decided and counted as [Limiter.AllowN]
// would, and has its own error: bad input, or a primary that is away, is the matter of
// those items only. Attempts of the same user are counted in their order.
//
// All users of a primary share a write, and all primaries are asked at once, so it takes
// as long as the slowest of them, for which ctx's deadline is for all. A user who has calls
// on their way already takes part as any caller of AllowN.
func (l *Limiter) AllowMany(ctx context.Context, items []Attempt) []Verdict {
	verdicts := make([]Verdict, len(items))
	m := l.newMany(len(items))
	for i, item := range items {
		tag, err := l.check(item.User, item.N)
		if err != nil {
			verdicts[i].Err = err
			continue
		}
		if l.denials != nil {
			res, local, owedTo := l.denied(tag, item.N)
			if local {
				verdicts[i].Result = res
				continue
			}
			if owedTo.key != "" {
				m.gather(ctx, settlement, tag, 0, owedTo)
			}
		}
		m.places[i] = m.gather(ctx, attempts, tag, item.N, counter{})
	}
	m.send(ctx)
	for i, at := range m.places {
		if at.party != nil {
			verdicts[i].Result, verdicts[i].Err = m.verdict(ctx, at)
		}
	}
	m.recycle()
	return verdicts
}

// A many is calls for many users at a time: an AllowMany, or what is owed to counters.
type many struct {
	*Limiter
	crowds *crowds
	places []place // by item; with no party where there is nothing to ask for

	own []place // the parties of users of whom nobody was there: this call makes their trips

	mu       sync.Mutex // guards
	panicked any        // by the Runner
}

func (l *Limiter) newMany(items int) *many {
	m := &many{Limiter: l, crowds: l.crowds, places: make([]place, items)}
	if m.crowds == nil {
		m.crowds = newCrowds() // in which the items only meet each other
	}
	return m
}

// recycle ends it, when all verdicts are there.
func (m *many) recycle() {
	for _, at := range m.own {
		at.party.recycle()
	}
}

// gather finds the place of an errand, for a settlement at a counter: in a party of this call, or among those who wait for
// the user's calls that are on their way. Of these it must not be asked to lead: it
// could not do so for several users at a time.
func (m *many) gather(ctx context.Context, e errand, tag string, cost int64, counter counter) place {
	deadline, _ := ctx.Deadline()
	at := place{stripe: m.crowds.of(tag), tag: tag}
	at.stripe.mu.Lock()
	defer at.stripe.mu.Unlock()
	at.crowd = at.stripe.crowds[tag]
	switch {
	case at.crowd == nil:
		at.crowd = at.stripe.found(tag)
		at.party = partyPool.Get().(*party)
		at.party.trip.errand, at.party.trip.at = e, counter
		at.crowd.gathered, at.crowd.by = at.party, m
		m.own = append(m.own, at)
		at.member = at.party.add(cost)
	case e == attempts && at.crowd.by == m && at.crowd.gathered.trip.errand == e && at.crowd.gathered.takes(cost):
		at.party = at.crowd.gathered
		at.member = at.party.add(cost)
	default:
		at.party, at.member = at.crowd.join(e, cost, deadline)
		at.party.guided = true
		if e != attempts {
			at.party.trip.at = counter
		}
	}
	return at
}

// send makes the trips of the parties of this call. Those to one node go together, and each
// node's by itself: the crowds are held until the replies are there, and a node that
// hangs must not hold the users of another.
func (m *many) send(ctx context.Context) {
	defer m.release()
	nodes := map[*nodeClock][]*place{}
	for i := range m.own {
		at := &m.own[i]
		m.prepare(ctx, &at.party.trip, at.tag)
		nodes[at.party.trip.clock] = append(nodes[at.party.trip.clock], at)
	}
	var wg sync.WaitGroup
	for _, places := range nodes {
		if len(nodes) == 1 {
			m.run(ctx, places)
		} else {
			wg.Go(func() { m.run(ctx, places) })
		}
	}
	wg.Wait()
	if m.panicked != nil {
		panic(m.panicked)
	}
}

// run makes trips together, and together again those whose guesses were wrong. Each crowd
// is handed on as soon as its trip is over.
func (m *many) run(ctx context.Context, places []*place) {
	defer func() {
		if p := recover(); p != nil {
			m.mu.Lock()
			m.panicked = p
			m.mu.Unlock()
		}
	}()
	calls := make([]cluster.Call, 0, len(places))
	for len(places) > 0 {
		calls = calls[:0]
		for _, at := range places {
			m.guess(&at.party.trip)
			calls = append(calls, m.call(&at.party.trip))
		}
		again := places[:0]
		for i, outcome := range m.client.RunAll(ctx, calls) {
			at := places[i]
			if over, err := m.learn(&at.party.trip, outcome.Reply, outcome.Err); over {
				m.finish(at, err)
			} else {
				again = append(again, at)
			}
		}
		places = again
	}
}

// finish ends a trip of this call.
func (m *many) finish(at *place, err error) {
	at.party.stage, at.party.err = settled, err
	m.handOn(at.stripe, at.crowd)
}

// release settles the trips from which a Runner did not come back.
func (m *many) release() {
	for i := range m.own {
		if at := &m.own[i]; at.party.stage != settled {
			m.finish(at, m.runnerLeft(&at.party.trip))
		}
	}
}

// verdict waits for the outcome of an attempt. The parties of this call, which have no
// channel to wait on, have theirs.
func (m *many) verdict(ctx context.Context, at place) (Result, error) {
	if at.party.done != nil {
		if err := m.wait(ctx, at); err != nil {
			return Result{}, err
		}
	}
	return m.outcome(at.party, at.member)
}
