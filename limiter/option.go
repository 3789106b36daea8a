package limiter

import (
	"fmt"
	"time"

	"github.com/slotlimit/slotlimit/keys"
)

// DefaultGrace is how long a counter outlives its window unless WithGrace says otherwise.
const DefaultGrace = time.Second

// An Option changes how a [Limiter] works. Options are applied in order by [New],
// which returns their errors.
type Option func(*Limiter) error

// WithPrefix sets what the Redis keys of the limiter begin with, "rl" by default.
// Limiters with different prefixes share nothing. At most 64 bytes, without braces
// and control bytes, else New returns [keys.ErrPrefix].
func WithPrefix(prefix string) Option {
	return func(l *Limiter) (err error) {
		l.layout, err = keys.New(prefix)
		return err
	}
}

// WithGrace sets how long a counter outlives its window, [DefaultGrace] by default,
// a whole number of milliseconds from 1 ms to [keys.MaxGrace].
//
// In that time the counter of a window that just ended can still be read, by an
// audit, and a node's clock that steps back by less than it finds its counters
// again. A longer grace costs memory: at 1 s, counters of 1-second windows take
// twice what their windows need. Limiters that share counters should use
// the same grace: from a counter's TTL each of them tells how long its window still
// lasts. Graces that differ by a second or more are noticed, and cost the node some
// more work for each attempt; if they differ by less, windows end that much late for
// one of them.
func WithGrace(grace time.Duration) Option {
	return func(l *Limiter) error {
		if grace < time.Millisecond || grace > keys.MaxGrace || grace%time.Millisecond != 0 {
			return fmt.Errorf("%w: grace %v: want whole milliseconds from 1ms to %v", ErrOption, grace, keys.MaxGrace)
		}
		l.grace = grace
		return nil
	}
}

// WithClock replaces time.Now as this process's clock, for tests. It may be wrong
// by any amount: it only guesses the window, which the node's clock decides.
func WithClock(now func() time.Time) Option {
	return func(l *Limiter) error {
		if now == nil {
			return fmt.Errorf("%w: nil clock", ErrOption)
		}
		l.now = now
		return nil
	}
}

// WithoutCoalescing gives every call a trip of its own, whatever else is on its way for
// the user. It is slower for users who make many attempts at a time. It is there for
// comparison, and for a Runner that has to see each attempt.
func WithoutCoalescing() Option {
	return func(l *Limiter) error {
		l.crowds = nil
		return nil
	}
}
