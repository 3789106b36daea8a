package cluster

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

// A once is a go-redis command that go-redis sends at most once, and that knows
// whether a reply to it is missing.
//
// go-redis resends a command whose reply was lost, up to MaxRedirects times, and
// then reports success: the script has counted two or more times for one call.
// NoRetry stops that. Redirects are followed all the same, since a node that
// redirects has run nothing.
type once struct {
	*redis.Cmd
	script []byte       // the argument that names the script, or is its text
	state  atomic.Int32 // of the sending; the caller may give up while go-redis works
}

// The states of a sending.
const (
	unsent    = iota // no byte has left, or an error reply said that the script did not run
	open             // a byte may have left, and no reply has come since
	abandoned        // the caller has gone: no byte may leave any more
	answered         // a durable's alone: the script replied, and its confirmation is open
)

var errAbandoned = errors.New("the caller gave up before the call was sent")

// newOnce makes the command NAME script 1 key args.
func newOnce(ctx context.Context, name any, script []byte, call Call) *once {
	o := &once{script: script}
	o.Cmd = redis.NewCmd(ctx, append([]any{name, o, 1, call.Key}, call.Argv()...)...)
	return o
}

// NoRetry keeps go-redis from sending the command again after a lost reply.
func (o *once) NoRetry() bool { return true }

// Clone copies the command as one that still must not be resent; without it,
// the embedded Cmd's copy would be an ordinary command.
func (o *once) Clone() redis.Cmder {
	clone := &once{Cmd: o.Cmd.Clone().(*redis.Cmd), script: o.script}
	clone.state.Store(o.state.Load())
	return clone
}

// MarshalBinary makes the command an argument of itself, the one behind the
// command's name. go-redis encodes arguments when it writes the command to a
// connection and at no other time, so this call is the moment from which on the
// script may run. No error tells it as surely: a deadline that ends the wait
// for a free connection and one that ends the wait for the reply look alike.
func (o *once) MarshalBinary() ([]byte, error) {
	if !o.state.CompareAndSwap(unsent, open) && o.state.Load() == abandoned {
		return nil, errAbandoned
	}
	return o.script, nil
}

// String is what a hook prints of the command, which is also an argument of itself: the
// embedded Cmd's text would contain itself without end.
func (o *once) String() string { return string(o.script) }

// SetErr is told the outcome of each sending. An error reply, such as a redirect
// that go-redis follows, says that this sending did not run the script; if the
// deadline ends before the next one, nothing is ambiguous.
func (o *once) SetErr(err error) {
	if _, reply := errors.AsType[redis.Error](err); reply {
		o.state.CompareAndSwap(open, unsent)
	}
	o.Cmd.SetErr(err)
}

// abandon keeps the command from being sent from now on, and reports whether a
// reply is missing: then it is too late.
func (o *once) abandon() (tooLate bool) {
	return !o.state.CompareAndSwap(unsent, abandoned)
}
