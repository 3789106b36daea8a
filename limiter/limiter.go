package limiter

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/slotlimit/slotlimit/cluster"
	"github.com/slotlimit/slotlimit/keys"
)

// An Allower decides whether an attempt of a user may go on. It is all that
// middleware and load tests need of a limiter; *[Limiter] is one.
type Allower interface {
	// AllowN decides on one attempt of cost n; see [Limiter.AllowN].
	AllowN(ctx context.Context, user string, n int64) (Result, error)
}

// A Runner runs scripts on a cluster; *[cluster.Client] is one.
type Runner interface {
	// Run runs the call's script at most once; see [cluster.Client.Run].
	Run(ctx context.Context, call cluster.Call) ([]int64, error)
	// RunAll runs many calls at once, each as Run does; see [cluster.Client.RunAll].
	RunAll(ctx context.Context, calls []cluster.Call) []cluster.Outcome
	// Home names the node whose clock counts for the key; see [cluster.Client.Home].
	Home(ctx context.Context, key string) string
}

// A Limiter decides, for every user, whether the user's attempts keep to a limit.
// The counts live in Redis, one counter a user and window, so all processes with
// the same prefix and limit share them.
//
// The algorithm is the fixed window: time is cut into windows of one period, and
// each window allows the rate. It is exact within a window and costs one
// round trip; its weakness is the boundary, where a burst at the end of one
// window and another at the start of the next pass twice the rate in
// a moment.
//
// Most callers want [Limiter.Allow]. Make a limiter with [New]; the zero value is
// not usable. Any number of goroutines may use one. It holds no connection and no
// goroutine, so there is nothing to close.
type Limiter struct {
	client Runner
	limit  Limit
	layout keys.Layout
	grace  time.Duration
	now    func() time.Time
	clocks nodeClocks

	durable cluster.Durable
}

var _ Allower = (*Limiter)(nil)

// New returns a limiter that applies the limit through the client, usually a
// [*cluster.Client]. It sends nothing. It fails when the limit or an option is
// out of range, with the errors that [Limit.Validate] and the options name.
func New(client Runner, limit Limit, opts ...Option) (*Limiter, error) {
	if v := reflect.ValueOf(client); client == nil || v.Kind() == reflect.Pointer && v.IsNil() {
		return nil, fmt.Errorf("%w: nil client", ErrOption)
	}
	if err := limit.Validate(); err != nil {
		return nil, err
	}
	l := &Limiter{client: client, limit: limit, grace: DefaultGrace, now: time.Now, durable: cluster.Durable{Unwritten: unwritten}}
	for _, opt := range opts {
		if opt == nil {
			return nil, fmt.Errorf("%w: nil Option", ErrOption)
		}
		if err := opt(l); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// Limit returns the limit that the limiter applies.
func (l *Limiter) Limit() Limit { return l.limit }

// Allow decides on one attempt of the user, of cost 1. See [Limiter.AllowN].
func (l *Limiter) Allow(ctx context.Context, user string) (Result, error) {
	return l.AllowN(ctx, user, 1)
}

// AllowN decides on one attempt of the user that costs n, and counts it, allowed or
// denied. An attempt of cost n is allowed when the count, with all of n, is within
// the rate; when it is not, n is counted all the same, so that with costs above 1 a
// denied attempt uses up what smaller ones could have had. n = 0 is [Limiter.Peek].
//
// A denial is a Result, not an error. An error means that there is no decision:
//   - ErrEmptyUser, ErrNegativeCost, ErrCostAboveRate: bad input, nothing was sent;
//   - ErrUnavailable: nothing was counted;
//   - ErrAmbiguous: counted once or not at all.
//
// It takes one round trip to the primary that owns the user, a second when this
// process was wrong about that node's clock, and returns within ctx's deadline
// and the client's time-out.
func (l *Limiter) AllowN(ctx context.Context, user string, n int64) (Result, error) {
	if n < 0 {
		return Result{}, fmt.Errorf("%w: %d", ErrNegativeCost, n)
	}
	// A rate of 0 denies all, and says so, whatever an attempt costs.
	if n > l.limit.Rate && l.limit.Rate > 0 || n > MaxRate {
		return Result{}, fmt.Errorf("%w: %d is above %v", ErrCostAboveRate, n, l.limit)
	}
	w, reply, err := l.onWindow(ctx, fixedWindowScript, user, n)
	if err != nil {
		return Result{}, err
	}
	res := reply.decide(l.limit, n)
	res.Key, res.Window = w.key, w.number
	return res, nil
}

// Peek tells the state of the user's limit without an attempt: it counts nothing
// and creates no key. Allowed says whether an attempt of cost 1 could have gone on
// at that moment. Errors are those of [Limiter.AllowN].
func (l *Limiter) Peek(ctx context.Context, user string) (Result, error) {
	return l.AllowN(ctx, user, 0)
}

// Reset forgets the attempts of the user in the present window. Errors are those of
// [Limiter.AllowN]; after ErrAmbiguous it may be repeated.
func (l *Limiter) Reset(ctx context.Context, user string) error {
	_, _, err := l.onWindow(ctx, resetScript, user, 0)
	return err
}

// maxGuesses bounds the attempts at hitting a window. The second guess, made
// with the node's own time, misses only if a boundary passes under way; windows
// that are shorter than the way take a few more.
const maxGuesses = 8

var errWindowsTooShort = errors.New("windows pass faster than calls reach the node")

// A window is one window of one user's counter.
type window struct {
	key    string
	number int64
	end    int64 // ms of Unix time
	guess  int64 // the node's time by which it was chosen, ms of Unix time
}

// onWindow runs a script on the counter of the user's present window: the one that
// this process believes in, and when the node says that it is another, again.
func (l *Limiter) onWindow(ctx context.Context, script *cluster.Script, user string, n int64) (window, windowReply, error) {
	userPart, err := l.layout.User(user)
	if err != nil {
		return window{}, windowReply{}, err
	}
	clock := l.clocks.of(l.client.Home(ctx, userPart))
	var w window
	for range maxGuesses {
		sent := l.now()
		w = l.windowAt(userPart, clock.at(sent))
		reply, err := l.run(ctx, script, w, n)
		if err != nil {
			return w, windowReply{}, err
		}
		if !reply.stale {
			clock.confirm(sent, reply.now)
			return w, reply, nil
		}
		clock.correct(sent, reply.now)
	}
	return w, windowReply{}, &cluster.CallError{Key: w.key, Kind: ErrUnavailable, Err: errWindowsTooShort}
}

// windowAt returns the window of the user at a time in ms of Unix time.
func (l *Limiter) windowAt(userPart string, milli int64) window {
	number := keys.WindowNumber(milli, l.limit.Period)
	var buf [128]byte
	key := keys.AppendWindow(buf[:0], userPart, l.limit.Name, l.limit.Period, number)
	return window{key: string(key), number: number, end: (number + 1) * l.limit.Period.Milliseconds(), guess: milli}
}

// run sends one call for one window. The scripts' headers say what the arguments
// are; reset takes the first two, and lets the others be.
func (l *Limiter) run(ctx context.Context, script *cluster.Script, w window, n int64) (windowReply, error) {
	reply, err := l.client.Run(ctx, cluster.Call{
		Script:  script,
		Key:     w.key,
		Args:    []int64{w.end, l.limit.Period.Milliseconds(), l.grace.Milliseconds(), n, w.guess},
		Durable: l.durability(script, n),
	})
	if err != nil {
		return windowReply{}, err
	}
	decoded, ok := decodeWindow(reply, w.end)
	if !ok {
		err := fmt.Errorf("unknown reply %v", reply)
		return windowReply{}, &cluster.CallError{Key: w.key, Kind: ErrAmbiguous, Err: err}
	}
	return decoded, nil
}
