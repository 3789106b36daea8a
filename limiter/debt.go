package limiter

import (
	"container/heap"
	"errors"
	"sync"
	"time"
)

// A debt is attempts that were answered and are not in their counter yet.
type debt struct {
	tag   string
	clock *nodeClock
	at    counter
	ends  time.Time // when the counter's time is over, by this process's clock

	// The shard's lock guards the rest.
	cost   int64
	queued bool      // a call of the user has a settlement before it
	due    time.Time // when it is settled, if no call of the user does it before
	index  int       // in the order in which they are due
}

// debts are those of some users: each is owed, or on its way with a call.
type debts struct {
	byKey   map[string]*debt // owed, by the key of the counter
	order   dueOrder         // the same
	carried map[*debt]struct{}
}

func newDebts() debts { return debts{byKey: map[string]*debt{}, carried: map[*debt]struct{}{}} }

// push adds a debt, with what is owed to its counter already.
func (s *debts) push(d *debt) {
	if other := s.pull(d.at.key); other != nil {
		d.cost += other.cost
		if other.due.Before(d.due) {
			d.due = other.due
		}
	}
	s.byKey[d.at.key] = d
	heap.Push(&s.order, d)
}

// pull removes the debt to a counter, if there is one.
func (s *debts) pull(key string) *debt {
	d := s.byKey[key]
	if d != nil {
		delete(s.byKey, key)
		heap.Remove(&s.order, d.index)
	}
	return d
}

// postpone returns the debts that are due by a time. Each is due again a while after that.
func (s *debts) postpone(by time.Time, again time.Duration) (due []*debt) {
	for len(s.order) > 0 && !s.order[0].due.After(by) {
		d := s.order[0]
		d.due = by.Add(again)
		due = append(due, d)
		heap.Fix(&s.order, 0)
	}
	return due
}

// losses are attempts that are in no counter, or in nobody knows.
type losses struct {
	mu     sync.Mutex
	gone   int64 // their counter was gone
	unsure int64 // they may have been added
	cause  error
}

func (o *losses) add(gone, unsure int64, cause error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.gone, o.unsure = o.gone+gone, o.unsure+unsure
	if cause != nil {
		o.cause = cause
	}
}

// carry has a settlement take what is owed to its counter, if that is still to do. Until
// it is back, nobody of the user is answered locally.
func (l *Limiter) carry(t *trip) {
	s := l.denials.of(t.tag)
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.debt = s.pull(t.at.key); t.debt != nil {
		t.cost = t.debt.cost
		s.carried[t.debt] = struct{}{}
		s.suspect(t.tag)
	}
}

// deliver takes the outcome of a settlement.
func (l *Limiter) deliver(t *trip, err error) {
	d := t.debt
	if d == nil {
		return
	}
	t.debt = nil
	s := l.denials.of(t.tag)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.carried, d)
	switch {
	case err == nil && t.answer.stale:
		// A reset forgot these attempts too, unless the counter may have expired.
		if now := l.now(); !now.Before(d.ends) || d.clock.at(now) >= d.at.end {
			l.denials.losses.add(d.cost, 0, errCounterGone)
		}
	case errors.Is(err, ErrAmbiguous):
		l.denials.losses.add(0, d.cost, err)
	case err != nil:
		d.queued, d.due = false, t.sent.Add(l.denials.refresh)
		s.push(d)
		l.denials.timer.arm(l, d.due, t.sent)
	}
}

// forgive takes the outcome of a reset: it forgot what was asked for before it, so what is
// owed of that is not owed any more.
func (l *Limiter) forgive(t *trip) {
	s := l.denials.of(t.tag)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pull(t.at.key)
	s.forget(s.users[t.tag])
}

var errCounterGone = errors.New("the counter was gone")
