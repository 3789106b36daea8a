package cluster

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"
)

// Boxed once, not for every call.
var (
	evalsha any = "evalsha"
	eval    any = "eval"
)

// sendSingly sends the call through go-redis, on a connection that is the call's alone
// for that time.
func (c *Client) sendSingly(ctx context.Context, t *trip) ([]int64, fate, error) {
	call := t.call
	ctx, cancel := context.WithDeadline(ctx, t.deadline)
	defer cancel()
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

// integers decodes the reply of a script: an integer, or an array of them.
func integers(cmd *redis.Cmd) ([]int64, error) {
	items, ok := cmd.Val().([]any)
	if !ok {
		items = []any{cmd.Val()}
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
