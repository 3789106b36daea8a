package cluster

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// nodeLane returns the lane of a client of a scripted node.
func nodeLane(c *Client) *lane { return c.fleet.at("127.0.0.1:1", nil) }

// warm returns a client of the node that is connected to it, and idle.
func warm(t *testing.T, n *scripted) *Client {
	c := wrapped(t, n)
	want(t, t.Context(), c, call(0), "ok")
	time.Sleep(time.Second) // whoever has dialled and read is gone
	synctest.Wait()
	return c
}

// A lone call is one write, by its caller: nobody else reads or writes.
func TestLoneCall(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n := &scripted{}
		c := warm(t, n)
		defer c.Close()
		n.answer = func(p *peer, args []string) string {
			k := nodeLane(c).link
			if args[0] == "EVALSHA" && len(k.pending) == 1 && !k.pending[0].flights[0].alone {
				t.Error("a lone call is not carried by its caller")
			}
			return usual(p, args)
		}
		for i := range int64(3) {
			want(t, t.Context(), c, call(i), "ok")
		}
		synctest.Wait()
		if got := n.peer(0).got(); !slices.Equal(got[1:], []string{"EVALSHA 0, PING", "EVALSHA 1, PING", "EVALSHA 2, PING"}) {
			t.Errorf("the node read %q", got)
		}
		if k := nodeLane(c).link; !k.quiet() {
			t.Error("something is under way behind a lone call")
		}
	})
}

// A lone call ends with its context, at once.
func TestLoneCallCancelled(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n := &scripted{}
		c := warm(t, n)
		defer c.Close()
		n.answer = func(*peer, []string) string { return "" }
		ctx, cancel := context.WithCancel(t.Context())
		var caller sync.WaitGroup
		caller.Go(func() { want(t, ctx, c, call(1), "ambiguous") })
		synctest.Wait()
		start := time.Now()
		cancel()
		caller.Wait()
		if took := time.Since(start); took != 0 {
			t.Errorf("it took %v", took)
		}
	})
}

// Constants and Args are one ARGV, in this order, alone, in a batch and through go-redis.
func TestConstants(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n := &scripted{}
		c := warm(t, n)
		defer c.Close()
		var got []string
		n.answer = func(p *peer, args []string) string {
			if strings.EqualFold(args[0], "EVALSHA") {
				got = args[3:]
				return ":1\r\n"
			}
			return usual(p, args)
		}
		constants := []string{"", "a b", "10"}
		of := Call{Script: echoScript, Key: "k", Constants: NewConstants(constants...), Args: []int64{-1, 0, 9, 10, 1 << 62}}
		constants[0] = "changed since"
		for _, run := range []func() error{
			func() error { _, err := c.Run(t.Context(), of); return err },
			func() error { return c.RunAll(t.Context(), []Call{of})[0].Err },
			func() error { _, err := c.Unbatched().Run(t.Context(), of); return err },
		} {
			got = nil
			if err := run(); err != nil {
				t.Fatal(err)
			}
			if want := []string{"k", "", "a b", "10", "-1", "0", "9", "10", "4611686018427387904"}; !slices.Equal(got, want) {
				t.Errorf("the node got %q, want %q", got, want)
			}
		}
	})
}

// Calls that come while nothing can be written leave in one write, in their order.
func TestCallsShareWrite(t *testing.T) {
	bubble(t, func(t *testing.T) {
		gate := make(chan struct{})
		n := &scripted{admit: func(context.Context) error { <-gate; return nil }}
		c := wrapped(t, n)
		defer c.Close()
		var callers sync.WaitGroup
		for i := range int64(4) {
			callers.Go(func() { want(t, t.Context(), c, call(i), "ok") })
			synctest.Wait()
		}
		close(gate)
		callers.Wait()
		if got := n.peer(0).got(); !slices.Equal(got, []string{"EVALSHA 0, EVALSHA 1, EVALSHA 2, EVALSHA 3, PING"}) {
			t.Errorf("the node read %q, want one read of four", got)
		}
	})
}

// A write has so many calls, in their order, and so many of them share a seal.
func TestWriteBounds(t *testing.T) {
	bubble(t, func(t *testing.T) {
		gate := make(chan struct{})
		n := &scripted{admit: func(context.Context) error { <-gate; return nil }}
		c := wrapped(t, n)
		defer c.Close()
		time.AfterFunc(time.Millisecond, func() { close(gate) })
		if ok := strings.Count(verdicts(c.RunAll(t.Context(), calls(maxWrite+1))), "ok"); ok != maxWrite+1 {
			t.Errorf("%d of %d calls have their reply", ok, maxWrite+1)
		}
		got := n.peer(0).got()
		sent := strings.ReplaceAll(strings.Join(got, ", "), ", PING", "")
		for i, command := range strings.Split(sent, ", ") {
			if command != "EVALSHA "+strconv.Itoa(i+1) {
				t.Fatalf("%s in the place of call %d", command, i+1)
			}
		}
		if len(got) != 2 || strings.Count(got[0], "EVALSHA") != maxWrite || strings.Count(got[0], "PING") != maxWrite/maxBatch {
			t.Errorf("%d reads, the first of %d calls and %d seals", len(got), strings.Count(got[0], "EVALSHA"), strings.Count(got[0], "PING"))
		}
	})
}

// While a connection is opened, calls leave or run out of time without having been sent; those
// behind them are sent all the same, however many it was.
func TestLeftInQueue(t *testing.T) {
	for _, gone := range []int{1, maxWrite - 1, maxWrite, maxWrite + 1, 3 * maxWrite} {
		bubble(t, func(t *testing.T) {
			gate := make(chan struct{})
			n := &scripted{admit: func(context.Context) error { <-gate; return nil }}
			c := wrapped(t, n)
			defer c.Close()
			ctx, cancel := context.WithCancel(t.Context())
			var callers sync.WaitGroup
			callers.Go(func() {
				for i, o := range c.RunAll(ctx, calls(gone)) {
					if got := verdict(int64(i+1), o.Reply, o.Err); got != "unavailable" {
						t.Fatalf("cancelled before it was sent: %s", got)
					}
				}
			})
			synctest.Wait()
			cancel()
			callers.Wait()
			callers.Go(func() { want(t, t.Context(), c, call(7), "ok") })
			synctest.Wait()
			close(gate)
			callers.Wait()
			if got := n.peer(0).got(); !slices.Equal(got, []string{"EVALSHA 7, PING"}) {
				t.Errorf("%d gone: the node read %q", gone, got)
			}
			if l := nodeLane(c); l.inFlight != 0 {
				t.Errorf("%d gone: %d calls are said to be in flight", gone, l.inFlight)
			}
		})
	}
}

// silentOn answers on all connections but those of the numbers.
func silentOn(numbers ...int) func(p *peer, args []string) string {
	return func(p *peer, args []string) string {
		if slices.Contains(numbers, p.number) {
			return ""
		}
		return usual(p, args)
	}
}

// Each call has its own deadline: one that is over ends that call alone.
func TestDeadlinePerCall(t *testing.T) {
	bubble(t, func(t *testing.T) {
		gate := make(chan struct{})
		n := &scripted{answer: silentOn(0), admit: func(context.Context) error { <-gate; return nil }}
		c := wrapped(t, n)
		defer c.Close()
		time.AfterFunc(time.Millisecond, func() { close(gate) })
		var callers sync.WaitGroup
		begin := time.Now()
		for i := range int64(8) {
			d := time.Duration(i) * 10 * time.Millisecond
			ctx, cancel := context.WithDeadline(t.Context(), begin.Add(max(d, 1)))
			defer cancel()
			if i%2 == 0 {
				ctx = deadlineOnly{ctx}
			}
			callers.Go(func() {
				right := "ambiguous"
				if i == 0 { // its time is over before it is written
					right = "unavailable"
				}
				want(t, ctx, c, call(i), right)
				if took := time.Since(begin); took < d || took > d+time.Millisecond {
					t.Errorf("a call with %v returned after %v", d, took)
				}
			})
		}
		callers.Wait()
		time.Sleep(stall)
		want(t, t.Context(), c, call(9), "ok") // over another connection
		if got := n.peer(0).got(); len(got) != 1 || strings.Contains(got[0], "EVALSHA 0") || strings.Count(got[0], "EVALSHA") != 7 {
			t.Errorf("the node read %q", got)
		}
	})
}

// deadlineOnly is a context that has a deadline and is never done.
type deadlineOnly struct{ context.Context }

func (deadlineOnly) Done() <-chan struct{} { return nil }
func (deadlineOnly) Err() error            { return nil }

// A lone caller that gives up goes at once, and the reply that comes later is nobody else's.
func TestLoneCallerLeaves(t *testing.T) {
	bubble(t, func(t *testing.T) { loneCallerLeaves(t, false) })
	bubble(t, func(t *testing.T) { loneCallerLeaves(t, true) })
}

func loneCallerLeaves(t *testing.T, silently bool) {
	n := &scripted{}
	c := warm(t, n)
	defer c.Close()
	n.answer = func(*peer, []string) string { return "" }
	begin := time.Now()
	var ctx context.Context
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if silently {
		ctx = deadlineOnly{ctx}
	}
	want(t, ctx, c, call(2), "ambiguous")
	if took := time.Since(begin); took != time.Millisecond {
		t.Errorf("returned after %v", took)
	}
	synctest.Wait()
	n.answer = usual
	for i := range int64(20) {
		if i == 3 {
			n.peer(0).say(":2\r\n" + echo("2")) // of the call that was left
		}
		want(t, t.Context(), c, call(10+i), "ok")
	}
	if l := nodeLane(c); l.inFlight != 0 {
		t.Errorf("%d calls are said to be in flight", l.inFlight)
	}
}

// A connection on which nothing was heard for a while is left to those who wait there.
func TestSilentConnectionIsLeft(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n := &scripted{answer: silentOn(0)}
		c := wrapped(t, n)
		defer c.Close()
		var callers sync.WaitGroup
		callers.Go(func() { want(t, t.Context(), c, call(1), "ok") })
		time.Sleep(stall + time.Millisecond)
		want(t, t.Context(), c, call(2), "ok")
		if n.opened() != 2 {
			t.Errorf("%d connections, want 2", n.opened())
		}
		n.peer(0).say(":1\r\n" + echo("1")) // slow, not dead
		callers.Wait()
		synctest.Wait()
		if _, err := n.peer(0).conn.Write([]byte("x")); err == nil {
			t.Error("the connection that was left is still open")
		}
	})
}

// What is given up on a silent connection says nothing of the one that has taken its place.
func TestSuspicionIsOfTheRightConnection(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n := &scripted{}
		c := warm(t, n)
		defer c.Close()
		n.answer = func(*peer, []string) string { return "" }
		var callers sync.WaitGroup
		var cancels []context.CancelFunc
		for i := range int64(2) {
			ctx, cancel := context.WithCancel(t.Context())
			cancels = append(cancels, cancel)
			callers.Go(func() { want(t, ctx, c, call(i), "ambiguous") })
			synctest.Wait()
		}
		cancels[0]()
		time.Sleep(2 * letGo)
		callers.Go(func() { want(t, t.Context(), c, call(2), "ok") })
		synctest.Wait() // it is under way on the second connection
		cancels[1]()
		time.Sleep(2 * letGo)
		callers.Go(func() { want(t, t.Context(), c, call(3), "ok") })
		synctest.Wait()
		if n.opened() < 2 {
			t.Fatal("the silent connection was not left")
		}
		n.peer(1).say(":2\r\n" + echo("1") + ":3\r\n" + echo("2"))
		callers.Wait()
		if n.opened() != 2 {
			t.Errorf("%d connections, want 2", n.opened())
		}
	})
}

// Close ends calls wherever they are: not sent, sent, alone or not.
func TestCloseDuringCalls(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n := &scripted{answer: func(*peer, []string) string { return "" }}
		c := wrapped(t, n)
		var callers sync.WaitGroup
		for i, right := range []string{"ambiguous", "ambiguous", "unavailable"} { // two writes, and one that waits
			callers.Go(func() { want(t, t.Context(), c, call(int64(i)), right) })
			synctest.Wait()
		}
		c.Close()
		callers.Wait()
		want(t, t.Context(), c, call(4), "unavailable")

		n = &scripted{admit: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }}
		c = wrapped(t, n)
		callers.Go(func() { want(t, t.Context(), c, call(5), "unavailable") })
		synctest.Wait()
		c.Close()
		callers.Wait()
	})
}
