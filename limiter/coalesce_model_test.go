package limiter

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slotlimit/slotlimit/cluster"
)

// A line is coalescing as its definition reads, for one user: calls in their order of
// arrival, of which some are under way together.
type line struct {
	t      *testing.T
	seed   uint64
	random *rand.Rand
	lim    *Limiter
	runner *scripted

	waiting [][]*lineCall // each what will leave together
	parted  []bool        // which of these is for a reset
	sent    []*lineCall   // under way; none when nothing is
	call    *sentCall     // of those
	guesses int           // made for them
	shared  bool          // they were more than one when they left

	counters map[string]int64 // by key
	ahead    time.Duration    // of the node's clock
}

// A lineCall is a call in the line.
type lineCall struct {
	*caller
	reset bool
	gone  bool // left while it was under way
}

func (l *line) fatalf(format string, args ...any) {
	l.t.Helper()
	l.t.Fatalf("seed %d: %s", l.seed, fmt.Sprintf(format, args...))
}

// arrive starts a call.
func (l *line) arrive() {
	c := &lineCall{reset: l.random.IntN(12) == 0}
	last := len(l.waiting) - 1
	if last < 0 || c.reset || l.parted[last] {
		l.waiting, l.parted = append(l.waiting, nil), append(l.parted, c.reset)
		last++
	}
	l.waiting[last] = append(l.waiting[last], c)
	if c.reset {
		c.caller = call(l.t.Context(), 0, func(ctx context.Context) (Result, error) { return Result{}, l.lim.Reset(ctx, "alice") })
	} else {
		c.caller = allow(l.t.Context(), l.lim, l.random.Int64N(4))
	}
	if len(l.sent) == 0 {
		l.leave()
	}
}

// leave lets those in front go, if there are any.
func (l *line) leave() {
	l.sent, l.guesses = nil, 0
	for len(l.sent) == 0 && len(l.waiting) > 0 {
		l.sent = l.waiting[0]
		l.waiting, l.parted = l.waiting[1:], l.parted[1:]
	}
	l.shared = len(l.sent) > 1
	l.send()
}

// send awaits the call of those under way, and checks what it carries.
func (l *line) send() {
	l.t.Helper()
	if len(l.sent) == 0 {
		if extra := l.runner.next(); extra != nil {
			l.fatalf("a call of cost %d was sent for nobody", extra.cost())
		}
		return
	}
	cost := int64(0)
	for _, c := range l.sent {
		cost += c.n
	}
	l.guesses++
	l.call = l.runner.next()
	if l.call == nil || l.call.cost() != cost || (l.call.Script == resetScript) != l.sent[0].reset {
		l.fatalf("sent %+v, want cost %d", l.call, cost)
	}
	if extra := l.runner.next(); extra != nil {
		l.fatalf("a second call is under way, of cost %d", extra.cost())
	}
}

// cancel ends the ctx of any call that has no outcome.
func (l *line) cancel() {
	group := l.random.IntN(len(l.waiting) + 1)
	if group == len(l.waiting) {
		l.cancelSent(l.sent[l.random.IntN(len(l.sent))])
	} else if n := len(l.waiting[group]); n > 0 {
		i := l.random.IntN(n)
		c := l.waiting[group][i]
		c.cancel()
		c.wantError(l.t, ErrUnavailable, context.Canceled)
		l.waiting[group] = slices.Delete(l.waiting[group], i, i+1)
	}
}

// cancelSent ends the ctx of a call that is under way.
func (l *line) cancelSent(c *lineCall) {
	if c.gone {
		return
	}
	c.gone = true
	c.cancel()
	c.wantError(l.t, ErrAmbiguous, context.Canceled)
	if call := c.err.(*cluster.CallError); call.Key != l.call.Key {
		l.fatalf("may have been counted in %q, want %q", call.Key, l.call.Key)
	}
	if !l.shared {
		l.leave()
	}
}

// answer has the node count, and checks what each caller is told.
func (l *line) answer() {
	before := l.counters[l.call.Key]
	if l.sent[0].reset {
		l.counters[l.call.Key] = 0
	}
	l.counters[l.call.Key] += l.call.cost()
	if l.random.IntN(10) == 0 {
		l.call.fail(ErrAmbiguous)
		l.wantErrors(ErrAmbiguous, errScripted)
		return
	}
	l.call.count(l.counters[l.call.Key])
	for _, c := range l.sent {
		before += c.n
		switch {
		case c.gone:
		case c.reset:
			if !c.isDone() || c.err != nil {
				l.fatalf("reset: done %v, %v", c.isDone(), c.err)
			}
		default:
			c.wantCount(l.t, before)
			allowed := before+peeked(c.n) <= l.lim.limit.Rate
			if c.res.Allowed != allowed || c.res.Key != l.call.Key {
				l.fatalf("cost %d, count %d: %+v", c.n, before, c.res)
			}
		}
	}
	l.leave()
}

// wantErrors checks that all who are under way got the error.
func (l *line) wantErrors(kind, cause error) {
	for _, c := range l.sent {
		if !c.gone {
			c.wantError(l.t, kind, cause)
		}
	}
	l.leave()
}

// stale has the node be in the next window.
func (l *line) stale() {
	l.ahead += l.lim.limit.Period
	l.call.stale(time.Now().Add(l.ahead))
	if l.guesses == maxGuesses {
		l.wantErrors(ErrUnavailable, errWindowsTooShort)
		return
	}
	l.sent = slices.DeleteFunc(l.sent, func(c *lineCall) bool { return c.gone })
	if len(l.sent) == 0 {
		l.leave()
	} else {
		l.send()
	}
}

func (l *line) step() {
	switch n := l.random.IntN(20); {
	case n < 10 || len(l.sent) == 0:
		l.arrive()
	case n < 13:
		l.cancel()
	case n < 14:
		l.call.fail(ErrUnavailable)
		l.wantErrors(ErrUnavailable, errScripted)
	case n < 16:
		l.stale()
	default:
		l.answer()
	}
}

// Whatever comes in whatever order: what is sent, and what each caller is told, is what
// the definition says.
func TestCoalescingAgainstModel(t *testing.T) {
	for seed := range uint64(300) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 0))
			l := &line{t: t, seed: seed, random: random, runner: newScripted(), counters: map[string]int64{}}
			var err error
			if l.lim, err = New(l.runner, PerMinute(3+random.Int64N(27))); err != nil {
				t.Fatal(err)
			}
			for range 80 {
				l.step()
			}
			for len(l.sent) > 0 {
				l.answer()
			}
			l.runner.none(t)
			wantQuiet(t, l.lim)
		})
	}
}
