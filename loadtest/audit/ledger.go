package audit

import (
	"hash/maphash"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// A Ledger takes down what callers are told, while they are told it. It holds one
// entry a Redis key, so its size is bounded by users times windows, whatever the
// number of requests or workers: about 200 bytes an entry. That is why it is shared, and
// parted into stripes to keep the workers out of each other's way, and not kept by
// every worker for itself.
//
// [NewLedger] makes one. It is safe for concurrent use.
type Ledger struct {
	seed    maphash.Seed
	stripes [stripes]stripe

	acknowledged, allowed, ambiguous, unavailable atomic.Int64
}

const (
	stripes   = 64
	clashesIn = 16 // clashes kept per stripe; the rest are only counted
)

type stripe struct {
	mu      sync.Mutex
	told    map[string]*Told  // by Redis key
	keyless map[string]Causes // lost replies of calls whose key is unknown, by user
	clashes []Clash
	clashed int64
}

// NewLedger returns an empty ledger.
func NewLedger() *Ledger {
	l := &Ledger{seed: maphash.MakeSeed()}
	for i := range l.stripes {
		l.stripes[i].told = map[string]*Told{}
		l.stripes[i].keyless = map[string]Causes{}
	}
	return l
}

// Acknowledged takes down a decision that has just come back: see [Ledger.AcknowledgedAt].
func (l *Ledger) Acknowledged(user string, window int64, key string, allowed bool) {
	l.AcknowledgedAt(time.Time{}, user, window, key, allowed)
}

// AcknowledgedAt takes down a decision that was asked for at a time by the load test's
// clock. Not the time of the answer: a count that is lost between the two was told all the
// same, and what took it must not seem to have come before it. If the time is zero, the present
// is taken, which is a little late.
func (l *Ledger) AcknowledgedAt(asked time.Time, user string, window int64, key string, allowed bool) {
	l.acknowledged.Add(1)
	s := l.stripe(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.entry(key, user)
	switch {
	case !t.Known:
		t.Window, t.Known = window, true
	case t.Window != window:
		s.clash(Clash{key, t.User, user, t.Window, window})
	}
	if t.User != user {
		s.clash(Clash{key, t.User, user, t.Window, window})
	}
	t.Acknowledged++
	if asked.IsZero() && t.First.IsZero() {
		asked = time.Now()
	}
	if t.First.IsZero() || !asked.IsZero() && asked.Before(t.First) {
		t.First = asked
	}
	if allowed {
		t.Allowed++
		l.allowed.Add(1)
	}
}

// Ambiguous is [Ledger.AmbiguousBy] for a cause that is not known.
func (l *Ledger) Ambiguous(user, key string) { l.AmbiguousBy(CauseOther, user, key) }

// AmbiguousBy takes down a call whose reply was lost, and how: see [CauseOf]. The key is that
// of the call, or "" if the caller does not know it: then any counter of the user may
// hold one more.
func (l *Ledger) AmbiguousBy(cause Cause, user, key string) {
	l.ambiguous.Add(1)
	if key == "" {
		s := l.stripe(user)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.keyless[user] = s.keyless[user].add(cause)
		return
	}
	s := l.stripe(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.entry(key, user)
	t.Ambiguous++
	t.Causes = t.Causes.add(cause)
}

// Unavailable takes down a call that surely was not counted.
func (l *Ledger) Unavailable() { l.unavailable.Add(1) }

func (l *Ledger) stripe(key string) *stripe {
	return &l.stripes[maphash.String(l.seed, key)%stripes]
}

func (s *stripe) entry(key, user string) *Told {
	t := s.told[key]
	if t == nil {
		t = &Told{Key: key, User: user}
		s.told[key] = t
	}
	return t
}

func (s *stripe) clash(c Clash) {
	s.clashed++
	if len(s.clashes) < clashesIn {
		s.clashes = append(s.clashes, c)
	}
}

// Tally returns how many calls have ended each way so far. The numbers are read one
// after the other while calls go on, so they fit together only at the end.
func (l *Ledger) Tally() Tally {
	return Tally{
		Acknowledged: l.acknowledged.Load(),
		Allowed:      l.allowed.Load(),
		Ambiguous:    l.ambiguous.Load(),
		Unavailable:  l.unavailable.Load(),
	}
}

// A Tally counts calls by how they ended.
type Tally struct{ Acknowledged, Allowed, Ambiguous, Unavailable int64 }

// Ended returns how many calls have ended.
func (t Tally) Ended() int64 { return t.Acknowledged + t.Ambiguous + t.Unavailable }

// Account returns all that was taken down. Call it when the last caller is done.
func (l *Ledger) Account() Account {
	a := Account{Tally: l.Tally(), Keyless: map[string]int64{}, KeylessCauses: map[string]Causes{}}
	for i := range l.stripes {
		s := &l.stripes[i]
		s.mu.Lock()
		for _, t := range s.told {
			one := *t
			one.Causes = maps.Clone(t.Causes) // the ledger may go on
			a.Told = append(a.Told, one)
		}
		for user, causes := range s.keyless {
			a.Keyless[user] += causes.sum()
			a.KeylessCauses[user] = maps.Clone(causes)
		}
		a.Clashes = append(a.Clashes, s.clashes...)
		a.Clashed += s.clashed
		s.mu.Unlock()
	}
	slices.SortStableFunc(a.Clashes, func(x, y Clash) int { return strings.Compare(x.Key, y.Key) })
	return a
}

// An Account is a closed ledger.
type Account struct {
	Tally   Tally
	Told    []Told           // one a Redis key, in no order
	Keyless map[string]int64 // lost replies whose key is unknown, by user

	// KeylessCauses says how the Keyless replies were lost, by user. Those that it leaves out
	// have CauseOther.
	KeylessCauses map[string]Causes

	Clashes []Clash // some of the keys with two users or windows
	Clashed int64   // how often that was seen
}

// Keys returns the keys that the limiter named, those to remove after a run.
func (a Account) Keys() []string {
	all := make([]string, 0, len(a.Told))
	for _, t := range a.Told {
		all = append(all, t.Key)
	}
	return all
}
