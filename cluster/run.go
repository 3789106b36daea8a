package cluster

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// The wait before a call is sent again doubles from minBackoff to maxBackoff. A
// promotion takes a second or more, a migrating slot some milliseconds.
const (
	minBackoff = 4 * time.Millisecond
	maxBackoff = 128 * time.Millisecond
)

// Boxed once, not for every call.
var (
	evalsha any = "evalsha"
	eval    any = "eval"
)

// Run runs the call's script once on the primary that owns the key's hash slot,
// and returns its reply, an array of integers.
//
// An error is a [*CallError] that is either [ErrUnavailable], the script did not
// run, or [ErrAmbiguous], it may have run; the table in the package's comment says
// which error is which. Run sends again only what surely did not run, and
// returns by ctx's deadline, or after [Config.Timeout] if that is sooner. The reply to a
// call that asks to be [Durable] is returned once it is confirmed.
//
// An error reply counts as "did not run". So a script must have one write command
// at most, as the last thing that can fail: what it wrote before an error would stay.
//
// Any number of goroutines may call Run.
func (c *Client) Run(ctx context.Context, call Call) ([]int64, error) {
	if err := call.check(); err != nil {
		return nil, &CallError{call.Key, ErrUnavailable, err}
	}
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	backoff := minBackoff
	for {
		reply, fate, err := c.send(ctx, call)
		if err == nil {
			return reply, nil
		}
		if c.cluster != nil && (fate == postponed || ofConnection(err)) {
			// Only redirects and age make go-redis look at the cluster anew, so the
			// slots of a dead primary would fail until the picture's age is reached.
			c.cluster.ReloadState(ctx)
		}
		switch fate {
		case lost:
			return nil, &CallError{call.Key, ErrAmbiguous, err}
		case postponed:
			if sleep(ctx, backoff/2+rand.N(backoff/2)) {
				backoff = min(2*backoff, maxBackoff)
				continue
			}
		}
		return nil, &CallError{call.Key, ErrUnavailable, err}
	}
}

// An Outcome is what became of one of the calls of [Client.RunAll].
type Outcome struct {
	Reply []int64
	Err   error // as of [Client.Run]
}

// RunAll runs many calls at once, and returns the outcome of each, in their order.
// Each is as independent of the others as if it had been given to [Client.Run].
func (c *Client) RunAll(ctx context.Context, calls []Call) []Outcome {
	outcomes := make([]Outcome, len(calls))
	var wg sync.WaitGroup
	for i, call := range calls {
		wg.Go(func() { outcomes[i].Reply, outcomes[i].Err = c.Run(ctx, call) })
	}
	wg.Wait()
	return outcomes
}

// bounded returns ctx with a deadline no later than the configured time-out from now.
func (c *Client) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if at, ok := ctx.Deadline(); ok && time.Until(at) <= c.timeout {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, c.timeout)
}

// send sends the call: by its digest, and as text where the node does not know
// the digest. The fate is meaningless without an error.
func (c *Client) send(ctx context.Context, call Call) ([]int64, fate, error) {
	reply, fate, err := c.sendAs(ctx, evalsha, call.Script.sha, call)
	if err != nil && fate == unknown {
		reply, fate, err = c.sendAs(ctx, eval, []byte(call.Script.text), call)
	}
	return reply, fate, err
}

func (c *Client) sendAs(ctx context.Context, name any, script []byte, call Call) ([]int64, fate, error) {
	// A context that is done makes go-redis fail in ways that depend on the moment.
	if err := ctx.Err(); err != nil {
		return nil, refused, err
	}
	if call.Durable.asked() {
		return c.sendDurably(ctx, name, script, call)
	}
	cmd := newOnce(ctx, name, script, call)
	missing, err := process(ctx, cmd, func() error { return c.UniversalClient.Process(ctx, cmd) })
	if err != nil {
		return nil, fateOf(err, missing), err
	}
	reply, err := integers(cmd.Cmd)
	return reply, lost, err // a reply that makes no sense: the script ran all the same
}

// process has send hand the command to go-redis, and returns when that is done or ctx
// is, whichever comes first. With an error, missing says that the command may have
// been sent without a reply since.
func process(ctx context.Context, cmd *once, send func() error) (missing bool, err error) {
	done := make(chan error, 1)
	go func() { done <- send() }()
	select {
	case err = <-done:
		return cmd.state.Load() == open, err
	case <-ctx.Done():
	}
	select {
	case err = <-done: // both at once: a reply is worth more than a deadline
		return cmd.state.Load() == open, err
	default:
	}
	// go-redis heeds a context's deadline, but not that it is cancelled, while it
	// waits for a reply. It goes on alone, no longer than the time-out.
	return cmd.abandon(), ctx.Err()
}

// integers decodes the reply of a script.
func integers(cmd *redis.Cmd) ([]int64, error) {
	items, ok := cmd.Val().([]any)
	if !ok {
		return nil, fmt.Errorf("reply is a %T, not an array", cmd.Val())
	}
	reply := make([]int64, len(items))
	for i, item := range items {
		n, ok := item.(int64)
		if !ok {
			return nil, fmt.Errorf("item %d of the reply is a %T, not an integer", i, item)
		}
		reply[i] = n
	}
	return reply, nil
}

// sleep waits for d, and reports false, at once, if ctx ends before that: a
// caller is better served by an early error than by one at the last moment.
func sleep(ctx context.Context, d time.Duration) bool {
	if at, ok := ctx.Deadline(); ok && time.Until(at) <= d {
		return false
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
