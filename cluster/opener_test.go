package cluster

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
	"go.uber.org/goleak"
)

// Whatever is opened is closed, however the greeting ends.
func TestFailedGreetingIsClosed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var mu sync.Mutex
		var closed []*closeCounter
		n := &scripted{}
		n.wear = func(conn net.Conn) net.Conn {
			mu.Lock()
			defer mu.Unlock()
			c := &closeCounter{Conn: conn}
			closed = append(closed, c)
			return c
		}
		n.answer = usual
		c := wrapped(t, n)
		n.greet = func(*peer, []string) string { return "-NOAUTH Authentication required.\r\n" }
		want(t, t.Context(), c, call(1), "unavailable")
		synctest.Wait()
		n.greet = func(p *peer, _ []string) string { p.conn.Close(); return "" }
		want(t, t.Context(), c, call(1), "unavailable")
		synctest.Wait()
		n.greet = func(*peer, []string) string { return "" }
		want(t, t.Context(), c, call(1), "unavailable")
		synctest.Wait()
		n.greet = nil
		want(t, t.Context(), c, call(1), "ok")
		c.Close()
		synctest.Wait()
		for i, conn := range closed {
			if conn.times.Load() == 0 {
				t.Errorf("connection %d of %d was not closed", i, len(closed))
			}
		}
		if len(closed) < 4 {
			t.Errorf("%d connections, want one at least for each greeting", len(closed))
		}
	})
}

type closeCounter struct {
	net.Conn
	times atomic.Int64
}

func (c *closeCounter) Close() error { c.times.Add(1); return c.Conn.Close() }

// listen accepts connections over TCP too, until the test ends, and returns the address.
func (n *scripted) listen(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			n.serve(conn)
		}
	}()
	return l.Addr().String()
}

// tcp returns a client of the node over TCP, in real time, connected and idle.
func tcp(t *testing.T, n *scripted) *Client {
	t.Helper()
	n.answer = usual
	c, err := Wrap(redis.NewClient(&redis.Options{Addr: n.listen(t), DisableIdentity: true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	want(t, t.Context(), c, call(0), "ok")
	rest(c)
	return c
}

// rest waits until nobody reads or writes any more.
func rest(c *Client) {
	for _, l := range *c.fleet.lanes.Load() {
		for {
			l.mu.Lock()
			resting := l.link == nil || l.link.quiet()
			l.mu.Unlock()
			if resting {
				break
			}
			time.Sleep(time.Millisecond) // the reader lingers: nothing else tells
		}
	}
}

// An idle connection that the server has closed is found out before a call is given to it.
func TestClosedWhileIdle(t *testing.T) {
	n := &scripted{}
	c := tcp(t, n)
	for i := range 5 {
		p := n.peer(i)
		p.conn.Close()
		for !nodeOf(c).idle.ended() {
			time.Sleep(time.Millisecond) // on its way to us
		}
		k := nodeOf(c)
		k.heard = time.Now() // nobody is at it, and however short ago it was heard:
		want(t, t.Context(), c, call(1), "ok")
		rest(c)
		p = n.peer(i + 1)
		if p == nil {
			t.Fatalf("%d connections, want %d", n.opened(), i+2)
		}
	}
}

// nodeOf returns the connection of a client that has one lane.
func nodeOf(c *Client) *link {
	all := *c.fleet.lanes.Load()
	for _, l := range all {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.link
	}
	return nil
}

// A deadline that has passed on an idle connection is not its end.
func TestIdleProbe(t *testing.T) {
	n := &scripted{}
	c := tcp(t, n)
	k := nodeOf(c)
	if err := k.conn.SetReadDeadline(past); err != nil {
		t.Fatal(err)
	}
	if k.idle.ended() {
		t.Error("taken for ended")
	}
	for i := range int64(3) {
		want(t, t.Context(), c, call(i), "ok")
	}
	if n.opened() != 1 {
		t.Errorf("%d connections, want 1", n.opened())
	}
	n.peer(0).say(":9\r\n")
	for !k.idle.ended() {
		time.Sleep(time.Millisecond) // on its way to us
	}
	want(t, t.Context(), c, call(4), "ok")
}

// A connection of the service's own Dialer need not be a socket: nothing is looked at then.
func TestIdleProbeWithoutSocket(t *testing.T) {
	near, far := net.Pipe()
	far.Close()
	if newIdleProbe(near).ended() {
		t.Error("taken for ended")
	}
	near.Close()
}

// An idle client has no goroutine, and one that is closed has none either.
func TestNoGoroutineWhenIdle(t *testing.T) {
	before := goleak.IgnoreCurrent()
	n := &scripted{}
	c := tcp(t, n)
	var callers sync.WaitGroup
	for i := range int64(100) {
		callers.Go(func() { want(t, t.Context(), c, call(i), "ok") })
	}
	callers.Wait()
	rest(c)
	nodes := []goleak.Option{before, goleak.IgnoreAnyFunction("github.com/slotlimit/slotlimit/cluster.(*peer).serve"),
		goleak.IgnoreAnyFunction("github.com/slotlimit/slotlimit/cluster.(*peer).write"),
		goleak.IgnoreAnyFunction("github.com/slotlimit/slotlimit/cluster.(*scripted).listen.func2")}
	if err := goleak.Find(nodes...); err != nil {
		t.Errorf("idle: %v", err)
	}
	c.Close()
	if err := goleak.Find(nodes...); err != nil {
		t.Errorf("closed: %v", err)
	}
}

// A node that refuses, or fails the greeting, leaves no goroutine either.
func TestNoGoroutineAfterFailedDials(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n := &scripted{}
		c := wrapped(t, n)
		n.greet = func(*peer, []string) string { return "-LOADING Redis is loading the dataset in memory\r\n" }
		want(t, t.Context(), c, call(1), "unavailable")
		dials := n.opened()
		time.Sleep(5 * time.Second)
		if synctest.Wait(); n.opened() != dials {
			t.Errorf("%d more connections when nobody calls", n.opened()-dials)
		}
		c.Close()
	})
}

// A node that refuses connections is not dialled more often than calls are repeated.
func TestRefusedConnections(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var mu sync.Mutex
		dials := 0
		n := &scripted{admit: func(context.Context) error {
			mu.Lock()
			defer mu.Unlock()
			dials++
			return &net.OpError{Op: "dial", Err: errors.New("refused")}
		}}
		c := wrapped(t, n)
		defer c.Close()
		begin := time.Now()
		want(t, t.Context(), c, call(1), "unavailable")
		if took := time.Since(begin); took > DefaultTimeout {
			t.Errorf("returned after %v", took)
		}
		synctest.Wait()
		if dials < 5 || dials > 40 {
			t.Errorf("%d dials", dials)
		}
	})
}
