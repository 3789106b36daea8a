package cluster

import (
	"bytes"
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// Of a batch, those calls are sent as text of which the node says that it does not know the
// script, and no others.
func TestNoScriptPerCall(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n := &scripted{}
		c := warm(t, n)
		defer c.Close()
		n.answer = func(p *peer, args []string) string {
			if args[0] == "EVALSHA" && (args[4] == "2" || args[4] == "4") {
				return "-NOSCRIPT No matching script. Please use EVAL.\r\n"
			}
			return usual(p, args)
		}
		if got := verdicts(c.RunAll(t.Context(), calls(5))); got != "ok ok ok ok ok" {
			t.Error(got)
		}
		evals := map[string]int{}
		for _, read := range n.peer(0).got() {
			for _, command := range strings.Split(read, ", ") {
				if strings.HasPrefix(command, "EVAL ") {
					evals[command]++
				}
			}
		}
		if len(evals) != 2 || evals["EVAL 2"] != 1 || evals["EVAL 4"] != 1 {
			t.Errorf("%v, want EVAL of 2 and 4", evals)
		}
	})
}

// An error reply is the error of its call, and of no other.
func TestErrorPerCall(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n := &scripted{}
		c := warm(t, n)
		defer c.Close()
		passing := 0
		n.answer = func(p *peer, args []string) string {
			switch {
			case args[0] == "EVALSHA" && args[4] == "2":
				return "-OOM command not allowed when used memory > 'maxmemory'.\r\n"
			case args[0] == "EVALSHA" && args[4] == "3" && passing < 3:
				passing++
				return "-TRYAGAIN Multiple keys request during rehashing of slot\r\n"
			case args[0] == "EVALSHA" && args[4] == "4":
				return "+a text\r\n" // it ran
			}
			return usual(p, args)
		}
		outcomes := c.RunAll(t.Context(), calls(5))
		if got := verdicts(outcomes); got != "ok unavailable ok ambiguous ok" {
			t.Error(got)
		}
		if passing != 3 {
			t.Errorf("TRYAGAIN was answered %d times", passing)
		}
		if e, ok := errors.AsType[*CallError](outcomes[1].Err); !ok || !strings.HasPrefix(e.Err.Error(), "OOM") {
			t.Errorf("%v, want the node's words", outcomes[1].Err)
		}
	})
}

// A call whose time is over is not sent, nor sent again as text or after a redirect.
func TestNotSentTooLate(t *testing.T) {
	for _, reply := range []string{"-NOSCRIPT no\r\n", "-MOVED 1 127.0.0.1:2\r\n", "-ASK 1 127.0.0.1:2\r\n"} {
		bubble(t, func(t *testing.T) {
			var conn heardConn
			n := &scripted{wear: func(c net.Conn) net.Conn { conn.Conn = c; return &conn }}
			c := warm(t, n)
			defer c.Close()
			conn.heard.Store(false)
			n.answer = func(p *peer, args []string) string {
				if args[0] != "PING" {
					return reply
				}
				return usual(p, args)
			}
			want(t, cancelledSilently{t.Context(), &conn}, c, call(1), "unavailable")
			if got := n.peer(0).got(); len(got) != 2 || n.opened() != 1 {
				t.Errorf("after %q the node read %q", reply, got[1:])
			}
		})
	}
	bubble(t, func(t *testing.T) {
		n := &scripted{}
		c := warm(t, n)
		defer c.Close()
		ctx, cancel := context.WithDeadline(t.Context(), time.Now())
		defer cancel()
		want(t, deadlineOnly{ctx}, c, call(1), "unavailable")
		if got := n.peer(0).got(); len(got) != 1 {
			t.Errorf("the node read %q", got[1:])
		}
	})
}

// cancelledSilently is a context that has ended once the client has read a reply of the
// connection, and wakes nobody.
type cancelledSilently struct {
	context.Context
	conn *heardConn
}

func (cancelledSilently) Done() <-chan struct{} { return nil }

func (c cancelledSilently) Err() error {
	if c.conn.heard.Load() {
		return context.Canceled
	}
	return nil
}

// A heardConn says whether anything was read from it since that was set to false.
type heardConn struct {
	net.Conn
	heard atomic.Bool
}

func (c *heardConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.heard.Store(true)
	}
	return n, err
}

// A shortConn fails the write that would take calls beyond so many bytes.
type shortConn struct {
	net.Conn
	left int
}

func (c *shortConn) Write(b []byte) (int, error) {
	if !bytes.Contains(b, []byte("EVALSHA")) {
		return c.Conn.Write(b)
	}
	n, _ := c.Conn.Write(b[:min(c.left, len(b))])
	c.Close()
	return n, &net.OpError{Op: "write", Err: errors.New("broken pipe")}
}

// Of a write that fails after n bytes, the calls whose end did not leave did not run, and are
// sent again; the others are ambiguous. Each runs once at most.
func TestWriteCut(t *testing.T) {
	const size = 5
	length := len(newFlight(context.Background(), &Call{Script: echoScript, Key: "k", Args: []int64{1}}, false, false, time.Time{}).appendTo(nil))
	for n := 0; n <= size*length+20; n += 7 {
		bubble(t, func(t *testing.T) {
			var mu sync.Mutex
			runs := map[string]int{}
			node := &scripted{}
			c := warm(t, node)
			defer c.Close()
			node.answer = func(p *peer, args []string) string {
				mu.Lock()
				defer mu.Unlock()
				if args[0] == "EVALSHA" {
					runs[args[4]]++
				}
				return usual(p, args)
			}
			node.wear = func(near net.Conn) net.Conn {
				node.wear = nil
				return &shortConn{near, n}
			}
			for i, o := range together(t, c, node, calls(size)...)() {
				right := "ok"
				if (i+1)*length <= n {
					right = "ambiguous"
				}
				if v := verdict(int64(i+1), o.Reply, o.Err); v != right {
					t.Errorf("call %d of %d bytes, cut after %d: %s (%v), want %s", i, length, n, v, o.Err, right)
				}
			}
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			for name, times := range runs {
				if times != 1 {
					t.Errorf("cut after %d: call %s ran %d times", n, name, times)
				}
			}
		})
	}
}

// A node that takes calls and answers none holds no more than so many, and the callers beyond
// that are told in time.
func TestBoundOfCallsInFlight(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n := &scripted{}
		c := warm(t, n)
		defer c.Close()
		n.answer = func(*peer, []string) string { return "" }
		var callers sync.WaitGroup
		callers.Go(func() { c.RunAll(t.Context(), calls(maxInFlight)) })
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if _, err := c.Run(ctx, call(1)); !errors.Is(err, ErrUnavailable) || !errors.Is(err, errCrowded) || ctx.Err() != nil {
			t.Errorf("%v, want ErrUnavailable before the deadline", err)
		}
		callers.Wait()
		synctest.Wait()
		if l := nodeLane(c); l.inFlight != 0 {
			t.Errorf("%d calls are said to be in flight", l.inFlight)
		}
		synctest.Wait()
		n.answer = usual
		want(t, t.Context(), c, call(2), "ok")
	})
}

// A server that has been demoted refuses what is sent to it, and a new connection leads to
// the new primary, though calls are under way on the old one.
func TestReadOnlyServerIsLeft(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n := &scripted{}
		c := warm(t, n)
		defer c.Close()
		n.answer = func(p *peer, args []string) string {
			switch {
			case p.number > 0:
				return usual(p, args)
			case args[0] == "EVALSHA":
				return "-READONLY You can't write against a read only replica.\r\n"
			}
			return usual(p, args)
		}
		var callers sync.WaitGroup
		for i := range int64(50) { // so that at no time nothing is under way
			callers.Go(func() { want(t, t.Context(), c, call(i), "ok") })
		}
		callers.Wait()
		refused := 0
		for _, read := range n.peer(0).got()[1:] {
			refused += strings.Count(read, "EVALSHA")
		}
		if n.opened() != 2 || refused > 50 {
			t.Errorf("%d connections, %d refusals", n.opened(), refused)
		}
	})
}
