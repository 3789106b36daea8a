package limiter

import (
	"context"
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
// not usable. Any number of goroutines may use one. It holds no connection, and no
// goroutine but for calls that are on their way, so there is nothing to close.
type Limiter struct {
	client Runner
	limit  Limit
	layout keys.Layout
	grace  time.Duration
	now    func() time.Time
	clocks nodeClocks

	algorithm algorithm // by the fields above, once the options have set them

	durable cluster.Durable
	exactly bool    // each call that was sent again is counted once
	crowds  *crowds // nil: every call on its own

	remembered int      // users who are denied, at most
	denials    *denials // nil: all are asked for
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
	l := &Limiter{client: client, limit: limit, grace: DefaultGrace, now: time.Now, durable: cluster.Durable{Unwritten: unwritten}, crowds: newCrowds()}
	for _, opt := range opts {
		if opt == nil {
			return nil, fmt.Errorf("%w: nil Option", ErrOption)
		}
		if err := opt(l); err != nil {
			return nil, err
		}
	}
	l.algorithm = newFixedWindow(l.limit, l.layout, l.grace)
	if err := l.exactlyOnce(); err != nil {
		return nil, err
	}
	if err := l.rememberDenials(); err != nil {
		return nil, err
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
// process was wrong about that node's clock, and returns within ctx's deadline, and some
// milliseconds after ctx is cancelled where others share the call or the way.
// Without a deadline, within the client's time-out, or twice that if a call for
// the same user was on its way.
func (l *Limiter) AllowN(ctx context.Context, user string, n int64) (Result, error) {
	tag, err := l.check(user, n)
	if err != nil {
		return Result{}, err
	}
	return l.do(ctx, attempts, tag, n)
}

// check returns the tag of the user, or what is wrong with an attempt.
func (l *Limiter) check(user string, n int64) (tag string, err error) {
	if n < 0 {
		return "", fmt.Errorf("%w: %d", ErrNegativeCost, n)
	}
	// A rate of 0 denies all, and says so, whatever an attempt costs.
	if n > l.limit.Rate && l.limit.Rate > 0 || n > MaxRate {
		return "", fmt.Errorf("%w: %d is above %v", ErrCostAboveRate, n, l.limit)
	}
	return keys.UserTag(user)
}

// Peek tells the state of the user's limit without an attempt: it counts nothing
// and creates no key. Allowed says whether an attempt of cost 1 could have gone on
// at that moment. Errors are those of [Limiter.AllowN].
func (l *Limiter) Peek(ctx context.Context, user string) (Result, error) {
	return l.AllowN(ctx, user, 0)
}

// Reset forgets the attempts of the user in the present window: those that this limiter
// was asked for before, and those that others counted before it runs. Errors are those
// of [Limiter.AllowN]; after ErrAmbiguous it may be repeated.
func (l *Limiter) Reset(ctx context.Context, user string) error {
	tag, err := keys.UserTag(user)
	if err != nil {
		return err
	}
	_, err = l.do(ctx, reset, tag, 0)
	return err
}

// do makes one call of a user.
func (l *Limiter) do(ctx context.Context, e errand, tag string, cost int64) (Result, error) {
	switch {
	case l.crowds == nil:
		return l.alone(ctx, &trip{errand: e, cost: cost}, tag)
	case l.denials != nil:
		return l.unlessDenied(ctx, e, tag, cost)
	}
	return l.together(ctx, e, tag, cost)
}
