package limiter

import (
	"context"
	"errors"
	"runtime"
	"time"

	"github.com/slotlimit/slotlimit/cluster"
)

var errRunnerLeft = errors.New("the Runner did not come back from the call")

// together makes one call of a user, an attempt or a reset, after those that are under
// way, and together with those that wait too.
//
// Who finds nobody leaves at once, from its own goroutine and within its own ctx: that
// costs a lock and an entry in a map. The others wait until the call before them is back.
// One alone then makes its call itself. Of several none is bound to
// make it for the others, who may have more time than it has, so a goroutine does,
// which is gone when there is nothing to send.
func (l *Limiter) together(ctx context.Context, e errand, tag string, cost int64) (Result, error) {
	s := l.crowds.of(tag)
	deadline, _ := ctx.Deadline()
	s.mu.Lock()
	if c := s.crowds[tag]; c != nil {
		p, m := c.join(e, cost, deadline)
		s.mu.Unlock()
		return l.follow(ctx, place{s, c, p, m, tag})
	}
	c := s.found(tag)
	s.mu.Unlock()
	defer l.handOn(s, c) // also when the Runner panics
	c.trip.errand, c.trip.cost = e, cost
	return l.alone(ctx, &c.trip, tag)
}

// alone makes a trip for one caller.
func (l *Limiter) alone(ctx context.Context, t *trip, tag string) (Result, error) {
	if err := l.travel(ctx, t, tag); err != nil {
		return Result{}, err
	}
	return l.deal(t, alone(t.cost)), nil
}

// runnerLeft ends a trip on which the Runner panicked, or ended its goroutine, and returns what
// others are told.
func (l *Limiter) runnerLeft(t *trip) error {
	err := &cluster.CallError{Key: t.at.key, Kind: ErrAmbiguous, Err: errRunnerLeft}
	if t.errand == settlement {
		l.deliver(t, err)
	}
	return err
}

// handOn hands a crowd on to the next party.
func (l *Limiter) handOn(s *stripe, c *crowd) {
	if p := s.next(c); p != nil {
		go l.serve(s, c, p)
	}
}

// serve makes the trips of parties until one is not this goroutine's to make.
func (l *Limiter) serve(s *stripe, c *crowd, p *party) {
	for p != nil {
		l.share(s, c, p)
		// Those who were just told and have more to ask do so first: then the next trip is
		// made with them too, and not with half of all, in turns.
		runtime.Gosched()
		p = s.next(c)
	}
}

// share makes the trip of a party, and settles it.
func (l *Limiter) share(s *stripe, c *crowd, p *party) {
	ctx, cancel := p.context()
	defer cancel()
	back := false
	defer func() {
		if back {
			return
		}
		// Each caller would have met the panic, had its call been its own.
		p.err = l.runnerLeft(&p.trip)
		if p.panicked = recover(); p.panicked == nil {
			defer l.handOn(s, c)
		}
		s.settle(p)
	}()
	l.prepare(ctx, &p.trip, c.tag)
	for over := false; !over; {
		l.guess(&p.trip)
		if !s.send(p) {
			break
		}
		reply, err := l.client.Run(ctx, l.call(&p.trip))
		if over, p.err = l.learn(&p.trip, reply, err); !over {
			s.miss(p)
		}
	}
	back = true
	s.settle(p)
}

// A place is where a caller waits: as a member of a party in a user's crowd.
type place struct {
	stripe *stripe
	crowd  *crowd
	party  *party
	member member
	tag    string
}

// follow waits for what becomes of a party that the caller joined.
func (l *Limiter) follow(ctx context.Context, at place) (Result, error) {
	if err := l.wait(ctx, at); err != nil {
		return Result{}, err
	}
	if at.party.stage == released {
		return l.lead(ctx, at)
	}
	return l.outcome(at.party, at.member)
}

// wait waits until the party is settled or released. It returns an error if the caller's
// ctx ended before that.
func (l *Limiter) wait(ctx context.Context, at place) error {
	gone := ctx.Done()
	if gone == nil {
		<-at.party.done
		return nil
	}
	if soon := at.member.soon; soon != nil && lasts(ctx, letGo) {
		<-soon.ch
		select {
		case <-at.party.done:
			return nil
		default:
		}
	}
	select {
	case <-at.party.done:
		return nil
	case <-gone:
		return l.leave(ctx, at)
	}
}

// lasts reports whether ctx is not done and its deadline, if it has one, is further away than d.
func lasts(ctx context.Context, d time.Duration) bool {
	deadline, ok := ctx.Deadline()
	return ctx.Err() == nil && (!ok || time.Until(deadline) > d)
}

// outcome is what a member of a settled party is told.
func (l *Limiter) outcome(p *party, m member) (Result, error) {
	switch {
	case p.panicked != nil:
		panic(p.panicked)
	case p.err != nil:
		return Result{}, p.err
	}
	return l.deal(&p.trip, p.share(m)), nil
}

// lead makes the trip of a party for its only member.
func (l *Limiter) lead(ctx context.Context, at place) (Result, error) {
	defer l.handOn(at.stripe, at.crowd)
	res, err := l.alone(ctx, &at.party.trip, at.tag)
	at.party.recycle()
	return res, err
}

// leave has a caller whose ctx ended leave its party. It returns nil when the answer is
// there: that is worth more than a deadline.
func (l *Limiter) leave(ctx context.Context, at place) error {
	stage, key := at.stripe.leave(at.party, at.member)
	switch stage {
	case settled:
		<-at.party.done
		return nil
	case sent:
		// If this guess is wrong, the next one is made without the caller. So it was counted
		// by this key or not at all.
		return &cluster.CallError{Key: key, Kind: ErrAmbiguous, Err: ctx.Err()}
	case released:
		l.handOn(at.stripe, at.crowd)
	}
	clock := l.clocks.of(l.client.Home(ctx, at.tag))
	counter := l.algorithm.counter(at.tag, clock.at(l.now()))
	return &cluster.CallError{Key: counter.key, Kind: ErrUnavailable, Err: ctx.Err()}
}
