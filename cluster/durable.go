package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/redis/go-redis/v9"
)

// A Durable says what must have happened to the writes of a call before
// [Client.Run] reports success. The zero value asks for nothing: the primary
// replies, and copies to its replicas in its own time, so a primary that dies
// takes with it what it had acknowledged and not yet copied.
//
// With it, the script is followed by WAIT, WAITAOF or both, on the same connection and
// in the same write. What is not confirmed before the call's deadline is
// [ErrAmbiguous] with the cause [ErrUnconfirmed]: it counted on the primary, and
// stays counted unless the primary is lost before the copy arrives.
//
// What it promises: a count that was acknowledged survives a failover to any
// replica that confirmed it. With Replicas equal to the number that each primary
// has, and with one replica each, that is any failover. What it does not: WAIT is
// no consensus. A cluster with more replicas than were asked for may promote one
// that lacks the count, and TAKEOVER promotes whichever it is told to.
//
// What it costs: a call waits for the slowest replica that it needs, a round trip
// between the nodes, and a shard with fewer replicas than that confirms nothing: its
// calls use up their deadline and are ambiguous. So it is from a failover until the old
// primary is back as a replica. Waiting holds a connection, and Config.PoolSize
// bounds how many calls can.
type Durable struct {
	// Replicas is how many replicas must have what the call wrote.
	Replicas int

	// AOF asks that the primary has it in its append-only file, on disk (WAITAOF 1 0). It is
	// the only help against a primary that dies and is back before anybody is
	// promoted: without a file it comes back empty, and its replicas copy that, whatever
	// they had confirmed. With Replicas, both must confirm.
	//
	// The servers must know WAITAOF (Redis 7.2, Valkey 7.2) and keep such a file
	// (appendonly yes); one that does not gets no call, and the error has the cause
	// [ErrCannotConfirm]. With appendfsync always the disk is part of each call; with
	// everysec a call takes up to a second or two, which the time-out must allow; with no
	// nothing is ever confirmed.
	//
	// Replicas are not waited for by WAITAOF too: they report what is on disk with the
	// acknowledgement that they send once a second, so that each call would take as long
	// (measured on Redis 8.6, with appendfsync always: 1.0 s instead of 2 ms).
	AOF bool

	// Unwritten reports that a script which replied so wrote nothing, so that there
	// is nothing to confirm. Nil means that every script writes.
	Unwritten func(reply []int64) bool
}

// asked reports whether there is anything to wait for.
func (d Durable) asked() bool { return d.Replicas > 0 || d.AOF }

// Causes of a [*CallError] of a call that is [Durable].
var (
	// ErrUnconfirmed means that the primary ran the script, and too few replicas or
	// files confirmed it in time. It comes with ErrAmbiguous.
	ErrUnconfirmed = errors.New("cluster: counted by the primary, not confirmed in time")

	// ErrCannotConfirm means that a server does not do what the confirmation needs: it
	// does not know the command, may not run it, or keeps no append-only file. It
	// comes with ErrUnavailable, for the server is asked before it is given a call; or
	// with ErrAmbiguous, when the server could and does no longer.
	ErrCannotConfirm = errors.New("cluster: server cannot confirm")
)

// A durable is a once that a [confirmer] sends together with its [wait]s.
//
// Its own outcome and that of the waits are kept apart. In go-redis the first error
// of a batch is the error of each command that has none yet, so a lost confirmation
// would pass for a lost script, and a WAIT that is refused for a script that was.
type durable struct {
	*once
	asks Durable

	said         error // the error reply to the present sending, if there was one
	confirmation error // after a reply: nil if it was confirmed
}

func newDurable(o *once, asks Durable) *durable {
	// A node that no confirmer is attached to confirms nothing.
	return &durable{once: o, asks: asks, confirmation: fmt.Errorf("%w: it was not asked to", ErrUnconfirmed)}
}

// Clone copies the command as one that is still confirmed.
func (d *durable) Clone() redis.Cmder { return newDurable(d.once.Clone().(*once), d.asks) }

// SetErr is told the outcome of each sending, and after the script's reply that of the
// wait, if it is lost: that changes the state no more.
func (d *durable) SetErr(err error) {
	if _, reply := errors.AsType[redis.Error](err); reply {
		d.said = err
	}
	if err == nil {
		d.state.CompareAndSwap(open, answered)
	}
	d.once.SetErr(err)
}

// outcome turns the outcome of a batch, the script and the waits behind it, into
// that of the script. refusal is what the node says against confirming, or nil.
func (d *durable) outcome(err error, waits []*wait, refusal error) error {
	if d.state.Load() == answered {
		d.confirmation = refusal
		for _, w := range waits {
			d.confirmation = cmp.Or(d.confirmation, w.verdict())
		}
		return nil
	}
	if d.said != nil {
		return d.said
	}
	// A write that fails proves that the end of the batch is missing. That may be the
	// wait, and the script is whole.
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "write" {
		return cutError{op}
	}
	return err
}

// A cutError is a failed write of a batch, which does not pass for one of a script.
type cutError struct{ op *net.OpError }

func (e cutError) Error() string { return e.op.Error() }
func (e cutError) Unwrap() error { return e.op.Err }

// sendDurably is sendAs for a call that is to be confirmed.
func (c *Client) sendDurably(ctx context.Context, name any, script []byte, call Call) ([]int64, fate, error) {
	d := newDurable(newOnce(ctx, name, script, call), call.Durable)
	missing, err := process(ctx, d.once, func() error {
		if err := c.confirmers.attach(ctx, c); err != nil {
			return err
		}
		return c.UniversalClient.Process(ctx, d)
	})
	if d.state.Load() != answered {
		return nil, fateOf(err, missing), err
	}
	reply, wrong := integers(d.Cmd)
	switch {
	case wrong != nil:
		return nil, lost, wrong
	case call.Durable.Unwritten != nil && call.Durable.Unwritten(reply):
		return reply, lost, nil
	case err != nil: // the caller's time is up, go-redis may still be at it
		return nil, lost, fmt.Errorf("%w: %w", ErrUnconfirmed, err)
	case d.confirmation != nil:
		return nil, lost, d.confirmation
	}
	return reply, lost, nil
}

// A wait is a command that follows a script: WAIT, or WAITAOF.
type wait struct {
	*redis.Cmd
	aof      bool
	replicas int // of WAIT
}

// waitMargin is what a wait leaves of the call's time for the way back. A server
// with nothing else to do notices up to 100 ms late that a wait is over; then the
// caller's deadline comes first, and the connection is closed.
const waitMargin = 10 * time.Millisecond

func newWaitAOF(ctx context.Context, deadline time.Time) *wait {
	return &wait{Cmd: redis.NewCmd(ctx, "waitaof", 1, 0, remaining{deadline}), aof: true}
}

func newWait(ctx context.Context, replicas int, deadline time.Time) *wait {
	return &wait{Cmd: redis.NewCmd(ctx, "wait", replicas, remaining{deadline}), replicas: replicas}
}

// waits makes what has to follow a script, with the time that a deadline leaves.
func (d Durable) waits(ctx context.Context, deadline time.Time) []*wait {
	waits := make([]*wait, 0, 2)
	if d.AOF {
		waits = append(waits, newWaitAOF(ctx, deadline))
	}
	if d.Replicas > 0 {
		waits = append(waits, newWait(ctx, d.Replicas, deadline))
	}
	return waits
}

// NoRetry keeps the batch from being sent again: go-redis asks every command of it.
func (w *wait) NoRetry() bool { return true }

// Clone copies the command as one that must not be resent.
func (w *wait) Clone() redis.Cmder {
	return &wait{w.Cmd.Clone().(*redis.Cmd), w.aof, w.replicas}
}

// verdict is nil if the reply says that enough was confirmed.
func (w *wait) verdict() error {
	if err := w.Err(); err != nil {
		return fmt.Errorf("%w: %w", ErrUnconfirmed, err)
	}
	if w.aof {
		if v, ok := w.Val().([]any); ok && len(v) > 0 && v[0] == int64(1) {
			return nil
		}
		return fmt.Errorf("%w: not in the primary's append-only file: WAITAOF replied %v", ErrUnconfirmed, w.Val())
	}
	if n, ok := w.Val().(int64); !ok || n < int64(w.replicas) {
		return fmt.Errorf("%w: by %d of %d replicas", ErrUnconfirmed, n, w.replicas)
	}
	return nil
}

// A remaining is the argument that says how long to wait, in ms. It is read when the
// command is encoded: before that, a call may have waited for a connection.
type remaining struct{ deadline time.Time }

func (r remaining) MarshalBinary() ([]byte, error) {
	left := time.Until(r.deadline)
	ms := max(left-waitMargin, left/2).Milliseconds()
	return fmt.Appendf(nil, "%d", max(1, ms)), nil // 0 is for ever
}
