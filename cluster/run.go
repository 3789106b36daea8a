package cluster

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"
)

// The wait before a call is sent again doubles from minBackoff to maxBackoff. A
// promotion takes a second or more, a migrating slot some milliseconds.
const (
	minBackoff = 4 * time.Millisecond
	maxBackoff = 128 * time.Millisecond
)

// Run runs the call's script once on the primary that owns the key's hash slot,
// and returns its reply, an integer or an array of integers.
//
// An error is a [*CallError] that is either [ErrUnavailable], the script did not
// run, or [ErrAmbiguous], it may have run; the table in the package's comment says
// which error is which. Run sends again only what surely did not run, and what is
// Repeatable, and returns by ctx's deadline, or after [Config.Timeout] if that is
// sooner. The reply to a call that asks to be [Durable] is returned once it is confirmed.
//
// An error reply counts as "did not run". So a script must have one write command
// at most, as the last thing that can fail: what it wrote before an error would stay.
//
// Any number of goroutines may call Run. Calls for one node that are under way at
// the same time share its connection, and leave in batches.
func (c *Client) Run(ctx context.Context, call Call) ([]int64, error) {
	now := time.Now()
	var t trip
	t.call, t.begun, t.deadline = call, now, c.deadline(ctx, now)
	return c.run(ctx, &t)
}

// A trip is a call on its way, which may take several sendings.
type trip struct {
	call     Call
	begun    time.Time // while that is the present time; then zero
	deadline time.Time

	// Of a call of RunAll, while lane is not nil.
	lane   *lane
	flight *flight // under way
	first  outcome // of the flight
}

func (c *Client) run(ctx context.Context, t *trip) ([]int64, error) {
	if err := t.call.check(); err != nil {
		return nil, &CallError{t.call.Key, ErrUnavailable, err}
	}
	kind := ErrUnavailable // until a reply is lost
	backoff := minBackoff
	for {
		reply, fate, err := c.send(ctx, t)
		if err == nil {
			if kind == ErrAmbiguous && t.call.Unsettled != nil && t.call.Unsettled(reply) {
				return nil, &CallError{t.call.Key, kind, errUnsettled}
			}
			return reply, nil
		}
		if fate == postponed || fate == lost || ofConnection(err) {
			c.look(ctx, err)
		}
		if fate == lost {
			kind = ErrAmbiguous
			if t.call.Repeatable {
				fate = postponed
			}
		}
		if fate == postponed && sleep(ctx, t.deadline, backoff/2+rand.N(backoff/2)) {
			backoff = min(2*backoff, maxBackoff)
			continue
		}
		return nil, &CallError{t.call.Key, kind, err}
	}
}

var errUnsettled = errors.New("the reply to an earlier sending was lost, and the present one settles nothing")

// look has go-redis look at the cluster anew, as far as the error gives reason to. It
// does so by itself only after redirects and when its picture is old, so the
// slots of a dead primary would fail until then.
func (c *Client) look(ctx context.Context, err error) {
	if c.cluster != nil && err != errCrowded {
		c.cluster.ReloadState(ctx)
	}
}

// send sends the call: by its digest, and as text where the node does not know
// the digest. The fate is meaningless without an error.
func (c *Client) send(ctx context.Context, t *trip) ([]int64, fate, error) {
	if c.unbatched || t.call.Durable.asked() {
		return c.sendSingly(ctx, t)
	}
	return c.sendBatched(ctx, t)
}

// An Outcome is what became of one of the calls of [Client.RunAll].
type Outcome struct {
	Reply []int64
	Err   error // as of [Client.Run]
}

// RunAll runs many calls at once, and returns the outcome of each, in their order.
// Calls for one node leave together. Each is as independent of the others as if it
// had been given to [Client.Run]; calls for the same key run in their order, unless one
// of them has to be sent again, or their connection falls silent between them.
func (c *Client) RunAll(ctx context.Context, calls []Call) []Outcome {
	now := time.Now()
	deadline := c.deadline(ctx, now)
	trips := make([]trip, len(calls))
	lanes := map[*lane]struct{}{}
	for i, call := range calls {
		trips[i] = trip{call: call, begun: now, deadline: deadline}
		if c.launch(ctx, &trips[i]) {
			lanes[trips[i].lane] = struct{}{}
		}
	}
	for l := range lanes {
		l.depart()
	}
	outcomes := make([]Outcome, len(calls))
	var others sync.WaitGroup
	for i := range trips {
		if c.land(ctx, &trips[i]) {
			outcomes[i].Reply = trips[i].first.reply
			continue
		}
		others.Go(func() { outcomes[i].Reply, outcomes[i].Err = c.run(ctx, &trips[i]) })
	}
	others.Wait()
	return outcomes
}

// deadline returns when a call that begins now must have returned.
func (c *Client) deadline(ctx context.Context, now time.Time) time.Time {
	deadline := now.Add(c.timeout)
	if at, ok := ctx.Deadline(); ok && at.Before(deadline) {
		return at
	}
	return deadline
}

// bounded returns ctx with a deadline no later than the configured time-out from now.
func (c *Client) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithDeadline(ctx, c.deadline(ctx, time.Now()))
}

// sleep waits for d, and reports false, at once, if the deadline or the end of ctx comes
// before that: a caller is better served by an early error than by one at the last moment.
func sleep(ctx context.Context, deadline time.Time, d time.Duration) bool {
	if ctx.Err() != nil || time.Until(deadline) <= d {
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
