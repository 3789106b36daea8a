package limiter

import (
	"context"
	"fmt"
	"hash/maphash"
	"sync"
	"time"
)

// DenialRefresh is for how long a denied user may be answered without asking the node
// again; in windows of less than eight times that, for an eighth of the window.
const DenialRefresh = time.Second

// denialMargin is how long before a denial ends the node is asked again: nodes tell the
// time in whole milliseconds, and clocks drift.
const denialMargin = 2 * time.Millisecond

// MaxDenialCache is the largest number of users that [WithDenialCache] takes.
const MaxDenialCache = 1 << 24

// WithDenialCache has the limiter remember up to so many users, from 1 to
// [MaxDenialCache], who are denied until their window ends, and answer their
// further attempts itself: [Result.Local] says so. These attempts are counted all the same,
// later, many of a user in one call. So a user who hammers at a closed door costs the
// cluster two calls in each [DenialRefresh] and process. A user takes about 200 bytes of
// memory, and as many again while something is owed.
//
// What is delayed:
//
//   - The attempts that were answered locally reach the counter just before the user's first
//     attempt after DenialRefresh; if the user goes quiet, within twice that, and by the
//     window's end. Until then other processes, audits and limiters of a higher rate find
//     the counter lower than it is to be. The Count of a local answer is that of the last
//     answer of the node, and what this process owes.
//   - A Reset through this limiter is seen at once, one by somebody else within DenialRefresh,
//     as is any other change of the counter. A raised limit is a new Limiter, which
//     remembers nothing. A reset forgets what was owed before it too, and a counter that
//     holds less than it did is taken for one that was reset.
//
// [Limiter.Flush] adds what is owed now: call it before the process ends, and
// before an audit. What could not be added is said by Flush. It is tried again while the
// counter is there, which is for the grace after its window, and then it is lost. Where a reply
// was lost it is not tried again: the attempts may have been counted, and are never
// counted twice. So a counter never holds more than was attempted, and only where Flush
// says so less than was acknowledged.
//
// The window's end is that of the node's clock, as its last answer told it, early by the
// time that the answer took and 2 ms. It relies on coalescing: with [WithoutCoalescing] New
// returns ErrOption. With [WithExactlyOnce] what is owed is added to a counter that was reset by
// somebody else too, and not to one whose window is over.
func WithDenialCache(users int) Option {
	return func(l *Limiter) error {
		if users < 1 || users > MaxDenialCache {
			return fmt.Errorf("%w: denial cache of %d users: want 1 to %d", ErrOption, users, MaxDenialCache)
		}
		l.remembered = users
		return nil
	}
}

// denials remembers who is denied until when, and what is owed to their counters.
type denials struct {
	seed    maphash.Seed
	shards  []denialShard
	refresh time.Duration
	timer   settleTimer
	losses  losses
}

// A denialShard holds a part of the users.
type denialShard struct {
	mu             sync.Mutex
	most           int // users, and counters that something is owed to
	users          map[string]*denial
	newest, oldest *denial // by when they were answered last
	debts
}

// A denial is what is known of a user who is denied.
type denial struct {
	tag    string
	clock  *nodeClock
	at     counter
	answer answer // of the node

	// By this process's clock: until when the node need not be asked, and when the
	// denial ends. What the node said was left, it said after it was asked: counted from
	// then, it ends too early by the time of the way, and never too late.
	fresh, ends time.Time

	newer, older *denial
}

// A cache of fewer users than two of these is not parted: parts of a few users would
// be full when others have room.
const denialShardUsers = 256

// rememberDenials makes the cache that the option asks for, or returns ErrOption.
func (l *Limiter) rememberDenials() error {
	if l.remembered == 0 {
		return nil
	}
	if l.crowds == nil {
		return fmt.Errorf("%w: denial cache without coalescing: what is owed to a counter goes with the user's next call", ErrOption)
	}
	d := &denials{
		seed: maphash.MakeSeed(), shards: make([]denialShard, min(64, max(1, l.remembered/denialShardUsers))),
		refresh: min(DenialRefresh, l.limit.Period/8),
	}
	for i := range d.shards {
		s := &d.shards[i]
		s.most, s.users, s.debts = l.remembered/len(d.shards), map[string]*denial{}, newDebts()
	}
	l.denials = d
	return nil
}

func (d *denials) of(tag string) *denialShard {
	return &d.shards[maphash.String(d.seed, tag)%uint64(len(d.shards))]
}

// denied answers an attempt of a user who is known to be denied, and owes it to the
// counter. If it does not, the node has to be asked; and if something is owed to a
// counter for which no settlement is on its way, one must come before that: it returns the
// counter, and expects the caller to see to it.
func (l *Limiter) denied(tag string, cost int64) (res Result, ok bool, owedTo counter) {
	now := l.now()
	s := l.denials.of(tag)
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.users[tag]
	if e == nil {
		return Result{}, false, counter{}
	}
	s.touch(e)
	owed := int64(0)
	d := s.byKey[e.at.key]
	if d != nil {
		owed = d.cost
	}
	fresh, left := e.fresh.Sub(now), e.ends.Sub(now)
	if fresh <= 0 || fresh > l.denials.refresh || left <= denialMargin ||
		cost > MaxRate-owed || cost > 0 && d == nil && len(s.byKey) == s.most {
		if d != nil && !d.queued {
			d.queued, owedTo = true, d.at
		}
		return Result{}, false, owedTo
	}
	switch {
	case d != nil:
		d.cost += cost
	case cost > 0:
		due := now.Add(min(2*l.denials.refresh, left-denialMargin))
		d = &debt{tag: tag, clock: e.clock, at: e.at, ends: e.ends, cost: cost, due: due}
		d.at.floor = e.answer.count
		s.push(d)
		l.denials.timer.arm(l, due, now)
	}
	a := e.answer
	a.left = left.Milliseconds()
	res = l.algorithm.deal(a, share{cost: cost, before: owed})
	res.Key, res.Window, res.Local = e.at.key, e.at.window, true
	return res, true, counter{}
}

// remember keeps what the answer to a call says of further attempts.
func (l *Limiter) remember(t *trip) {
	left, denied := l.algorithm.denies(t.answer)
	s := l.denials.of(t.tag)
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.users[t.tag]
	if !denied {
		s.forget(e)
		return
	}
	if e == nil {
		if len(s.users) == s.most {
			s.forget(s.oldest)
		}
		e = &denial{tag: t.tag}
		s.users[t.tag] = e
	}
	e.clock, e.at, e.answer = t.clock, t.at, t.answer
	e.fresh, e.ends = t.sent.Add(l.denials.refresh), t.sent.Add(time.Duration(left)*time.Millisecond)
	s.touch(e)
}

// suspect has the next attempt of a user ask the node, and those after it, until there is
// an answer.
func (d *denials) suspect(tag string) {
	s := d.of(tag)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.suspect(tag)
}

func (s *denialShard) suspect(tag string) {
	if e := s.users[tag]; e != nil {
		e.fresh = time.Time{}
	}
}

// forget removes a user, or nobody if e is nil. What is owed to the counter stays owed.
func (s *denialShard) forget(e *denial) {
	if e != nil {
		s.unlink(e)
		delete(s.users, e.tag)
	}
}

// touch makes a user the newest.
func (s *denialShard) touch(e *denial) {
	if s.newest == e {
		return
	}
	s.unlink(e)
	e.older, s.newest = s.newest, e
	if e.older != nil {
		e.older.newer = e
	} else {
		s.oldest = e
	}
}

// unlink takes a user out of the order, if it is in it.
func (s *denialShard) unlink(e *denial) {
	if e.newer != nil {
		e.newer.older = e.older
	} else if s.newest == e {
		s.newest = e.older
	}
	if e.older != nil {
		e.older.newer = e.newer
	} else if s.oldest == e {
		s.oldest = e.newer
	}
	e.newer, e.older = nil, nil
}

// unlessDenied makes one call of a user, if it is not an attempt to which the answer is known.
func (l *Limiter) unlessDenied(ctx context.Context, e errand, tag string, cost int64) (Result, error) {
	if e == reset {
		l.denials.suspect(tag)
	} else if res, ok, owedTo := l.denied(tag, cost); ok {
		return res, nil
	} else if owedTo.key != "" {
		return l.afterSettlement(ctx, tag, cost, owedTo)
	}
	return l.together(ctx, e, tag, cost)
}
