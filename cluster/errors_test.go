package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/redis/go-redis/v9"
)

func TestFateOf(t *testing.T) {
	op := func(op string, err error) error { return &net.OpError{Op: op, Net: "tcp", Err: err} }
	for _, c := range []struct {
		err     error
		missing bool
		want    fate
	}{
		{replyError("NOSCRIPT No matching script. Please use EVAL."), true, unknown},
		{replyError("TRYAGAIN x"), true, postponed},
		{replyError("CLUSTERDOWN The cluster is down"), true, postponed},
		{replyError("CLUSTERDOWN Hash slot not served"), true, postponed},
		{replyError("LOADING x"), true, postponed},
		{replyError("MASTERDOWN x"), true, postponed},
		{replyError("READONLY x"), true, postponed},
		{replyError("BUSY Redis is busy running a script."), true, postponed},
		{replyError("MOVED 1 127.0.0.1:1"), true, postponed},
		{replyError("ASK 1 127.0.0.1:1"), true, postponed},
		{replyError("ERR max number of clients reached"), true, postponed},
		{replyError("BUSYKEY Target key name already exists."), true, refused},
		{replyError("OOM command not allowed when used memory > 'maxmemory'."), true, refused},
		{replyError("NOPERM x"), true, refused},
		{replyError("NOAUTH Authentication required."), true, refused},
		{replyError("WRONGTYPE x"), true, refused},
		{replyError("ERR Error running script"), true, refused},
		{fmt.Errorf("wrapped: %w", replyError("TRYAGAIN x")), true, postponed},
		{redis.Nil, true, refused},

		{redis.ErrClosed, true, refused},
		{redis.ErrPoolTimeout, true, postponed},
		{redis.ErrPoolExhausted, true, postponed},
		{op("dial", syscall.ECONNREFUSED), true, postponed},
		{op("dial", context.DeadlineExceeded), true, postponed},
		{op("write", syscall.EPIPE), true, postponed},

		// The same errors before and after the sending.
		{op("read", syscall.ECONNRESET), true, lost},
		{op("read", os.ErrDeadlineExceeded), true, lost},
		{op("read", os.ErrDeadlineExceeded), false, postponed}, // of a handshake
		{io.EOF, true, lost},
		{io.EOF, false, postponed},
		{io.ErrUnexpectedEOF, true, lost},
		{context.DeadlineExceeded, true, lost},
		{context.DeadlineExceeded, false, postponed},
		{context.Canceled, true, lost},
		{errors.New("redis: can't parse reply"), true, lost},
	} {
		if got := fateOf(c.err, c.missing); got != c.want {
			t.Errorf("fateOf(%v, missing %v) = %d, want %d", c.err, c.missing, got, c.want)
		}
	}
}

func TestCallError(t *testing.T) {
	err := fmt.Errorf("deciding: %w", &CallError{Key: "k", Kind: ErrAmbiguous, Err: io.EOF})
	if !errors.Is(err, ErrAmbiguous) || !errors.Is(err, io.EOF) || errors.Is(err, ErrUnavailable) {
		t.Errorf("%v: kind and cause must be found, and no other kind", err)
	}
}

func newTestOnce(t *testing.T) *once {
	return newOnce(t.Context(), evalsha, []byte("sha"), Call{Key: "k", Args: []int64{1}})
}

// The state follows the sending: encoding opens it, an error reply closes it.
func TestOnceState(t *testing.T) {
	o := newTestOnce(t)
	if _, err := o.MarshalBinary(); err != nil || o.state.Load() != open {
		t.Fatalf("after encoding: %v, state %d", err, o.state.Load())
	}
	for _, c := range []struct {
		err  error
		want int32
	}{{io.EOF, open}, {nil, open}, {replyError("MOVED 1 127.0.0.1:1"), unsent}, {io.EOF, unsent}} {
		if o.SetErr(c.err); o.state.Load() != c.want {
			t.Errorf("after %v: state %d, want %d", c.err, o.state.Load(), c.want)
		}
	}
}

// Whoever gives up before the sending prevents it; later, it is too late.
func TestOnceAbandon(t *testing.T) {
	early := newTestOnce(t)
	if early.abandon() {
		t.Error("too late before the sending")
	}
	if _, err := early.MarshalBinary(); err == nil {
		t.Error("an abandoned command is sent")
	}
	late := newTestOnce(t)
	if _, err := late.MarshalBinary(); err != nil {
		t.Fatal(err)
	}
	if !late.abandon() {
		t.Error("not too late after the sending")
	}
}

// A copy of a command that must not be resent must not be resent.
func TestOnceClone(t *testing.T) {
	o := newTestOnce(t)
	o.state.Store(open)
	clone, ok := o.Clone().(*once)
	if !ok || !clone.NoRetry() || clone.state.Load() != open {
		t.Errorf("clone %#v", o.Clone())
	}
}
