package limiter

import (
	"fmt"

	"github.com/slotlimit/slotlimit/cluster"
)

// WithDurable has an attempt acknowledged only when so many replicas have its count,
// at least 1. Without it a primary that dies takes counts with it that were
// acknowledged and not yet copied: a few, and users have those attempts again.
//
// An acknowledged count then survives an unplanned failover, if the replica that is
// promoted is one that confirmed: with one replica for each primary it is. It is no
// consensus; [cluster.Durable] says where it ends. It does not survive a primary
// that is back, empty, before its replica is promoted: [WithDurableAOF] is against that.
//
// What is not confirmed within ctx's deadline and the client's time-out is
// ErrAmbiguous with the cause [ErrUnconfirmed]: it was counted, and may be lost. In a shard
// that has too few replicas, after a failover for instance, this is every attempt, and
// each takes all of that time. An attempt costs the round trip from the primary to its replica on top.
//
// Peek, and a decision that finds itself in another window, write nothing and wait for
// nothing, save that a Peek which shares a call with attempts waits as they do.
// Reset is durable too. The ACL must allow WAIT.
func WithDurable(replicas int) Option {
	return func(l *Limiter) error {
		if replicas < 1 {
			return fmt.Errorf("%w: durable on %d replicas: want at least 1", ErrOption, replicas)
		}
		l.durable.Replicas = replicas
		return nil
	}
}

// WithDurableAOF has an attempt acknowledged only when its count is on the disk of
// its primary, in the append-only file. It then survives a primary that dies and is
// back at once, before its replica is promoted. With [WithDurable] replicas and file
// must confirm, and it survives either.
//
// The servers must know WAITAOF, that is Redis or Valkey 7.2 or later, and keep the
// file: appendonly yes. Where one does not, the error is ErrUnavailable with the cause
// [ErrCannotConfirm] and nothing is counted. With appendfsync always an attempt
// costs the time of a write to disk; with everysec up to a second or two, so that the
// client's default time-out of 1 s is too short; with no it is never confirmed. The
// ACL must allow WAITAOF.
func WithDurableAOF() Option {
	return func(l *Limiter) error {
		l.durable.AOF = true
		return nil
	}
}

// Causes of ErrAmbiguous and ErrUnavailable that only durable limiters meet.
var (
	// ErrUnconfirmed means that the attempt was counted on the primary, and too few
	// replicas or files confirmed it in time. It comes with ErrAmbiguous.
	ErrUnconfirmed = cluster.ErrUnconfirmed

	// ErrCannotConfirm means that the server cannot do what was asked for, and why.
	ErrCannotConfirm = cluster.ErrCannotConfirm
)

// unwritten reports replies of scripts that wrote nothing: it was another window.
func unwritten(reply []int64) bool { return len(reply) > 0 && reply[0] == 0 }
