package limiter

import (
	"context"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"
)

// crowds holds the calls of this process that are under way, by user: for each user
// who has any, a crowd, and for others nothing. So what it holds grows with the calls in
// progress and not with the users ever seen.
type crowds struct {
	seed    maphash.Seed
	stripes [64]stripe
}

// A stripe is the part of the users that share a lock. It may hold very many crowds: an
// AllowMany holds those of all its users.
type stripe struct {
	mu     sync.Mutex
	crowds map[string]*crowd // by the user's tag

	_ [112]byte // two stripes in one cache line would slow each other down
}

func newCrowds() *crowds {
	c := &crowds{seed: maphash.MakeSeed()}
	for i := range c.stripes {
		c.stripes[i].crowds = map[string]*crowd{}
	}
	return c
}

// of returns the stripe of a user.
func (c *crowds) of(tag string) *stripe {
	return &c.stripes[maphash.String(c.seed, tag)%uint64(len(c.stripes))]
}

// A crowd is one user's calls: one that is on its way to the node, or about to
// leave, and behind it the parties that wait for their turn. The stripe's lock guards it.
//
// Someone is always in charge of a crowd: the goroutine whose call is on its way.
// With the reply it hands the crowd on, to the party that waited longest, or removes it.
type crowd struct {
	tag         string
	first, last *party // those that wait

	// trip is that of the caller who found nobody there and left at once. Only that
	// caller uses it.
	trip trip

	// gathered is, in its place, the party of an AllowMany that found nobody there and may
	// have more attempts of the user to add. Only those may be added.
	gathered *party
	by       *many
}

// A party is one or more callers of one user who make one trip together, and share
// its answer: attempts, or a single reset.
//
// The stripe's lock guards it while it waits. Once done is closed, nothing changes.
type party struct {
	trip  trip // its cost is the sum of those of the members
	stage stage

	// members are counted, not listed: each knows its cost, and the costs of those who
	// came before it. So taking one more in, and dealing out to them all, is the
	// same work however many they are.
	members int
	joined  int64    // the costs of all who ever joined
	left    []member // those of them who left in time
	late    []member // those who left when it was sent

	// guided says that no member must be asked to make the trip by itself.
	guided bool

	// deadline is the latest of the members', zero if one of them has none.
	deadline time.Time

	done     chan struct{} // closed when the answer is there, or when its only member must go
	soon     *signal       // given then too, or before if that takes long; nil while only one has joined
	err      error         // in place of an answer
	panicked any           // in place of both

	next *party // behind it in the crowd
}

// A signal is given once, at the latest after letGo.
//
// A caller who waits for an answer waits for the end of its ctx too. To wait for either
// costs as much as all else that a caller among many does, and answers nearly always come
// at once. So all but the first wait for the signal alone, and those who have no answer by then
// for either. Who has a deadline before that waits for either from the start.
type signal struct {
	given atomic.Bool
	ch    chan struct{}
	timer *time.Timer
}

// letGo is how long it takes a member at most to notice that its ctx was cancelled.
const letGo = 5 * time.Millisecond

func newSignal() *signal {
	s := &signal{ch: make(chan struct{})}
	s.timer = time.AfterFunc(letGo, s.give)
	return s
}

func (s *signal) give() {
	if s.given.CompareAndSwap(false, true) {
		close(s.ch)
	}
}

// A stage is how far a party has come.
type stage uint8

const (
	waiting  stage = iota // nothing is sent: who leaves now was never there
	sent                  // on its way: who leaves now may have been counted
	released              // its only member is in charge of the crowd, and makes the trip
	settled               // the answer or an error is there
)

// A member is one attempt of a party: what it costs, and the costs of all who joined
// before it, those who left since included.
type member struct {
	cost, before int64
	soon         *signal // nil for who waits for the answer and for the end of ctx from the start
}

// Crowds and parties are used again: there is one for every call that comes alone, and
// for every one that waits alone.
var (
	crowdPool = sync.Pool{New: func() any { return new(crowd) }}
	partyPool = sync.Pool{New: func() any { return new(party) }}
)

// found puts a crowd of which the caller is in charge in the place of none. The
// caller holds the lock.
func (s *stripe) found(tag string) *crowd {
	c := crowdPool.Get().(*crowd)
	c.tag = tag
	s.crowds[tag] = c
	return c
}

// join adds a call to the last party of those that wait, or to a new one behind it. The
// caller holds the lock.
func (c *crowd) join(e errand, cost int64, deadline time.Time) (*party, member) {
	p := c.last
	switch {
	case p == nil:
		p = newParty(e, deadline)
		c.first, c.last = p, p
	case e != attempts || p.trip.errand != attempts || !p.takes(cost):
		// A reset comes between the attempts before it and those after it.
		p = newParty(e, deadline)
		c.last.next, c.last = p, p
	default:
		if deadline.IsZero() || !p.deadline.IsZero() && deadline.After(p.deadline) {
			p.deadline = deadline
		}
		if p.soon == nil {
			p.soon = newSignal()
		}
	}
	m := p.add(cost)
	m.soon = p.soon
	return p, m
}

func newParty(e errand, deadline time.Time) *party {
	p := partyPool.Get().(*party)
	p.trip.errand = e
	p.deadline = deadline
	p.done = make(chan struct{})
	return p
}

// takes reports whether a script still takes the sum with one more cost in it.
func (p *party) takes(cost int64) bool { return p.joined <= MaxRate-cost }

func (p *party) add(cost int64) member {
	m := member{cost: cost, before: p.joined}
	p.joined += cost
	p.trip.cost += cost
	p.members++
	return m
}

// tell wakes all members.
func (p *party) tell() {
	soon := p.soon
	close(p.done) // whoever is released may use the party again, from that moment
	if soon != nil {
		soon.timer.Stop()
		soon.give()
	}
}

// recycle is for the last who knows the party.
func (p *party) recycle() {
	*p = party{}
	partyPool.Put(p)
}

// next takes the next party that has to be sent, for a goroutine that is in charge and
// bound to none of its members. It returns nil when the caller is no longer in charge: the
// party's only member is, or the crowd is gone.
func (s *stripe) next(c *crowd) *party {
	s.mu.Lock()
	for p := c.first; p != nil; p = c.first {
		c.first = p.next
		if c.first == nil {
			c.last = nil
		}
		p.next = nil
		switch {
		case p.members == 0:
			continue // all left
		case p.members > 1 || p.guided:
			s.mu.Unlock()
			return p
		}
		p.stage = released
		s.mu.Unlock()
		p.tell()
		return nil
	}
	delete(s.crowds, c.tag)
	s.mu.Unlock()
	*c = crowd{}
	crowdPool.Put(c)
	return nil
}

// send marks a party as sent on its present guess, and reports false if nobody is left
// to send it for.
func (s *stripe) send(p *party) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.members == 0 {
		return false
	}
	p.stage = sent
	return true
}

// miss marks a party as not sent: its guess was wrong, so nothing was counted. Those
// who left meanwhile were told where they may have been counted, and that was there.
func (s *stripe) miss(p *party) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p.stage = waiting
	for _, m := range p.late {
		p.remove(m)
	}
	p.late = p.late[:0]
}

// settle wakes all members of a party.
func (s *stripe) settle(p *party) {
	s.mu.Lock()
	p.stage = settled
	s.mu.Unlock()
	p.tell()
}

// leave takes a member out of its party, if it is not too late, and returns how far the
// party has come, and where it was sent.
func (s *stripe) leave(p *party, m member) (at stage, key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch p.stage {
	case waiting:
		p.remove(m)
	case sent:
		p.late = append(p.late, m)
		key = p.trip.at.key
	}
	return p.stage, key
}

// remove takes a member out of a party that is not sent.
func (p *party) remove(m member) {
	p.members--
	p.trip.cost -= m.cost
	p.left = append(p.left, m)
}

// share is a member's part of a party that is settled.
func (p *party) share(m member) share {
	before := m.before
	for _, gone := range p.left {
		if gone.before < m.before { // who costs something is before all that add to it
			before -= gone.cost
		}
	}
	return share{cost: m.cost, before: before, total: p.trip.cost}
}

// context bounds the trip of a party, which goes on as long as it helps any member.
func (p *party) context() (context.Context, context.CancelFunc) {
	if p.deadline.IsZero() {
		return context.Background(), func() {}
	}
	return context.WithDeadline(context.Background(), p.deadline)
}
