package cluster

import (
	"errors"
	"io"
	"net"
	"strconv"
	"syscall"
	"testing"
	"time"
)

func newTestDurable(t *testing.T, asks Durable) (*durable, []*wait) {
	d := newDurable(newTestOnce(t), asks)
	if _, err := d.MarshalBinary(); err != nil {
		t.Fatal(err)
	}
	return d, asks.waits(t.Context(), time.Now())
}

// A batch that was cut in the wait was not cut in the script.
func TestDurableCutWrite(t *testing.T) {
	d, w := newTestDurable(t, Durable{Replicas: 1})
	cut := &net.OpError{Op: "write", Net: "tcp", Err: syscall.EPIPE}
	err := d.outcome(cut, w, nil)
	if fate := fateOf(err, d.state.Load() == open); fate != lost || !errors.Is(err, syscall.EPIPE) {
		t.Errorf("%v is fate %d, want lost", err, fate)
	}
}

// The script's outcome is its own, whatever becomes of the wait.
func TestDurableOutcome(t *testing.T) {
	moved, failed := replyError("MOVED 1 127.0.0.1:1"), replyError("ERR of the wait")
	for name, c := range map[string]struct {
		script, batch error
		replied       bool // to the script
		want          error
	}{
		"both":                 {nil, nil, true, nil},
		"script, wait refused": {nil, failed, true, nil},
		"script, wait lost":    {nil, io.EOF, true, nil},
		"redirect":             {moved, moved, true, moved},
		"redirect, wait lost":  {moved, io.EOF, true, moved},
		"neither":              {nil, io.EOF, false, io.EOF},
	} {
		d, w := newTestDurable(t, Durable{Replicas: 1})
		if c.replied {
			d.SetErr(c.script)
		}
		if c.batch != nil && d.Err() == nil {
			d.SetErr(c.batch) // as go-redis does with commands that have no error
		}
		if err := d.outcome(c.batch, w, nil); err != c.want {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
		if got, want := d.state.Load() == answered, c.replied && c.script == nil; got != want {
			t.Errorf("%s: answered is %t", name, got)
		}
	}
}

func TestWaitVerdict(t *testing.T) {
	for _, c := range []struct {
		asks  Durable
		reply any
		ok    bool
	}{
		{Durable{Replicas: 1}, int64(1), true},
		{Durable{Replicas: 1}, int64(2), true},
		{Durable{Replicas: 1}, int64(0), false},
		{Durable{Replicas: 2}, int64(1), false},
		{Durable{Replicas: 1}, "OK", false},
		{Durable{Replicas: 1}, nil, false},
		{Durable{AOF: true}, []any{int64(1), int64(0)}, true},
		{Durable{AOF: true}, []any{int64(0), int64(1)}, false},
		{Durable{AOF: true}, []any{}, false},
		{Durable{AOF: true}, int64(1), false},
		{Durable{AOF: true}, nil, false},
	} {
		w := c.asks.waits(t.Context(), time.Now())[0]
		w.SetVal(c.reply)
		if err := w.verdict(); (err == nil) != c.ok || err != nil && !errors.Is(err, ErrUnconfirmed) {
			t.Errorf("%+v, reply %v: %v", c.asks, c.reply, err)
		}
	}
}

// Where file and replica are asked for, one of them is not enough.
func TestDurableConfirmedByAll(t *testing.T) {
	file, none := []any{int64(1), int64(0)}, []any{int64(0), int64(0)}
	for _, c := range []struct {
		aof, replicas any
		ok            bool
	}{{file, int64(1), true}, {file, int64(0), false}, {none, int64(1), false}, {none, int64(0), false}} {
		d, waits := newTestDurable(t, Durable{Replicas: 1, AOF: true})
		d.SetErr(nil)
		waits[0].SetVal(c.aof)
		waits[1].SetVal(c.replicas)
		if err := d.outcome(nil, waits, nil); err != nil || (d.confirmation == nil) != c.ok {
			t.Errorf("file %v, replicas %v: %v, confirmation %v", c.aof, c.replicas, err, d.confirmation)
		}
	}
}

// A wait ends before the call does, and never waits for ever.
func TestWaitRemaining(t *testing.T) {
	for _, left := range []time.Duration{-time.Hour, 0, time.Microsecond, 3 * time.Millisecond, 15 * time.Millisecond, time.Second} {
		text, err := remaining{time.Now().Add(left)}.MarshalBinary()
		ms, parseErr := strconv.Atoi(string(text))
		if err != nil || parseErr != nil || ms < 1 || ms > 1 && time.Duration(ms)*time.Millisecond >= left {
			t.Errorf("%v left: waits %q ms, %v", left, text, err)
		}
	}
}

// Nothing of a batch may be resent, whichever command go-redis asks.
func TestDurableNoRetry(t *testing.T) {
	d, w := newTestDurable(t, Durable{Replicas: 1})
	if !d.NoRetry() || !w[0].NoRetry() || !d.Clone().NoRetry() || !w[0].Clone().NoRetry() {
		t.Error("a command of a batch may be resent")
	}
	if clone, ok := d.Clone().(*durable); !ok || clone.asks.Replicas != 1 || clone.state.Load() != open {
		t.Errorf("clone %#v", d.Clone())
	}
}
