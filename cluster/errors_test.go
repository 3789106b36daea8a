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

// A reply is an error as a server sends it.
type reply string

func (r reply) Error() string { return string(r) }
func (reply) RedisError()     {}

func TestFateOf(t *testing.T) {
	op := func(op string, err error) error { return &net.OpError{Op: op, Net: "tcp", Err: err} }
	for _, c := range []struct {
		err  error
		open bool
		want fate
	}{
		{reply("NOSCRIPT No matching script. Please use EVAL."), true, unknown},
		{reply("TRYAGAIN x"), true, postponed},
		{reply("CLUSTERDOWN The cluster is down"), true, postponed},
		{reply("CLUSTERDOWN Hash slot not served"), true, postponed},
		{reply("LOADING x"), true, postponed},
		{reply("MASTERDOWN x"), true, postponed},
		{reply("READONLY x"), true, postponed},
		{reply("BUSY Redis is busy running a script."), true, postponed},
		{reply("MOVED 1 127.0.0.1:1"), true, postponed},
		{reply("ASK 1 127.0.0.1:1"), true, postponed},
		{reply("ERR max number of clients reached"), true, postponed},
		{reply("BUSYKEY Target key name already exists."), true, refused},
		{reply("OOM command not allowed when used memory > 'maxmemory'."), true, refused},
		{reply("NOPERM x"), true, refused},
		{reply("NOAUTH Authentication required."), true, refused},
		{reply("WRONGTYPE x"), true, refused},
		{reply("ERR Error running script"), true, refused},
		{fmt.Errorf("wrapped: %w", reply("TRYAGAIN x")), true, postponed},
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
		if got := fateOf(c.err, c.open); got != c.want {
			t.Errorf("fateOf(%v, open %v) = %d, want %d", c.err, c.open, got, c.want)
		}
	}
}

func TestCallError(t *testing.T) {
	err := fmt.Errorf("deciding: %w", &CallError{Key: "k", Kind: ErrAmbiguous, Err: io.EOF})
	if !errors.Is(err, ErrAmbiguous) || !errors.Is(err, io.EOF) || errors.Is(err, ErrUnavailable) {
		t.Errorf("%v: kind and cause must be found, and no other kind", err)
	}
}

// A copy of a command that must not be resent must not be resent.
func TestOnceClone(t *testing.T) {
	o := newOnce(t.Context(), evalsha, []byte("sha"), Call{Key: "k", Args: []any{1}})
	if _, err := o.MarshalBinary(); err != nil || !o.open {
		t.Fatal("encoding is not noticed")
	}
	for _, c := range []struct {
		err  error
		open bool
	}{{io.EOF, true}, {nil, true}, {reply("MOVED 1 127.0.0.1:1"), false}} {
		if o.SetErr(c.err); o.open != c.open {
			t.Errorf("after %v: open %v, want %v", c.err, o.open, c.open)
		}
	}
	o.open = true
	clone, ok := o.Clone().(*once)
	if !ok || !clone.NoRetry() || !clone.open {
		t.Errorf("clone %#v", o.Clone())
	}
}
