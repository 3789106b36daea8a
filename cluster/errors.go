package cluster

import (
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/redis/go-redis/v9"
)

// What Open and Wrap may return, always wrapped with the value at fault.
var (
	// ErrConfig means that a Config holds something that cannot work, or that
	// Wrap was given a client that it cannot count with. Nothing was dialled.
	ErrConfig = errors.New("cluster: invalid configuration")

	// ErrUnreachable means that none of the addresses gave an answer.
	ErrUnreachable = errors.New("cluster: no node reachable")

	// ErrNotCluster means that a server answered, but does not run in cluster mode.
	ErrNotCluster = errors.New("cluster: server is not in cluster mode")

	// ErrSlotsUnserved means that at least one hash slot has no primary, so that
	// some users could never be counted.
	ErrSlotsUnserved = errors.New("cluster: hash slots without a primary")
)

// What Run may return, wrapped in a [*CallError]. Every error of Run is one of
// the two, and they exclude each other.
var (
	// ErrUnavailable means that the script surely did not run: nothing was counted.
	ErrUnavailable = errors.New("cluster: unavailable, the script did not run")

	// ErrAmbiguous means that the call was sent and its reply was lost: the script
	// ran once or not at all, and nobody can say which.
	ErrAmbiguous = errors.New("cluster: outcome unknown, the script may have run")
)

// A CallError says which call got no reply, and why.
type CallError struct {
	Key  string // the Redis key of the call
	Kind error  // ErrUnavailable or ErrAmbiguous
	Err  error  // the cause, as go-redis or the network reported it
}

func (e *CallError) Error() string {
	return fmt.Sprintf("%v (key %q): %v", e.Kind, e.Key, e.Err)
}

// Unwrap lets errors.Is find both the kind and the cause.
func (e *CallError) Unwrap() []error { return []error{e.Kind, e.Err} }

// A fate is what an error tells of the script that was sent.
type fate int

const (
	lost      fate = iota // it may have run: never send again
	unknown               // it did not run: the node does not know its digest
	postponed             // it did not run, and may later: send again
	refused               // it did not run, and would not later either
)

// passing holds the beginnings of error replies that end by themselves. A node
// gives each of them in place of running the script, so sending again is safe.
// MOVED and ASK are here for the call that met more of them than go-redis follows.
var passing = []string{
	"TRYAGAIN", "CLUSTERDOWN", "LOADING", "MASTERDOWN", "READONLY", "BUSY ",
	"MOVED", "ASK ", "ERR max number of clients",
}

// fateOf says what err, the outcome of one sending, tells of the script.
// missing says that a byte of it may have left this process, with no reply since.
func fateOf(err error, missing bool) fate {
	if reply, ok := errors.AsType[redis.Error](err); ok {
		return fateOfReply(reply.Error())
	}
	if errors.Is(err, redis.ErrClosed) {
		return refused
	}
	if !missing || neverSent(err) {
		return postponed
	}
	return lost
}

// fateOfReply says what an error reply tells. A node replies with an error
// before it runs a script, or because a command in the script failed: then it wrote
// nothing, if it is one that [Client.Run] may be given.
func fateOfReply(reply string) fate {
	if strings.HasPrefix(reply, "NOSCRIPT") {
		return unknown
	}
	for _, p := range passing {
		if strings.HasPrefix(reply, p) {
			return postponed
		}
	}
	return refused
}

// neverSent reports errors that occur before the whole of a call is written, even
// if an earlier sending of it was written, and redirected. A write that fails has
// left out the end of the command, and a server runs no command without its end.
func neverSent(err error) bool {
	if errors.Is(err, redis.ErrPoolTimeout) || errors.Is(err, redis.ErrPoolExhausted) {
		return true
	}
	op, ok := errors.AsType[*net.OpError](err)
	return ok && (op.Op == "dial" || op.Op == "write")
}

// ofConnection reports errors after which the picture of the cluster may be
// stale: the node that was asked may be dead, and no reply will say so.
func ofConnection(err error) bool {
	_, reply := errors.AsType[redis.Error](err)
	return !reply
}
