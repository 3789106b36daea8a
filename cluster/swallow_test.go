package cluster

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// together has calls sent in one write, over a new connection, and returns a function that
// waits for their outcomes.
func together(t *testing.T, c *Client, n *scripted, calls ...Call) (outcomes func() []Outcome) {
	t.Helper()
	l := nodeLane(c)
	l.renew(l.link)
	synctest.Wait()
	gate, done, ctx := make(chan struct{}), make(chan []Outcome, 1), t.Context()
	n.admit = func(context.Context) error { <-gate; return nil }
	go func() { done <- c.RunAll(ctx, calls) }()
	synctest.Wait()
	n.admit = nil
	close(gate)
	return func() []Outcome { return <-done }
}

// held has calls sent in one write while no reply is: it returns the node's end of the
// connection, what the node would have replied to each command, and the calls' outcomes.
func held(t *testing.T, c *Client, n *scripted, calls ...Call) (p *peer, replies []string, outcomes func() []Outcome) {
	t.Helper()
	var mu sync.Mutex
	n.answer = func(p *peer, args []string) string {
		mu.Lock()
		defer mu.Unlock()
		replies = append(replies, usual(p, args))
		return ""
	}
	outcomes = together(t, c, n, calls...)
	synctest.Wait()
	mu.Lock()
	defer mu.Unlock()
	n.answer = usual
	return n.peer(n.opened() - 1), replies, outcomes
}

// No caller is given his neighbour's reply when replies get lost on the way, whichever
// they are, and whatever follows: every call of that write is ambiguous.
func TestSwallowedReplies(t *testing.T) {
	const size = 4
	for from := range size + 1 {
		for to := from + 1; to <= size+1; to++ {
			for _, next := range []string{"", ":5\r\n", "*1\r\n:5\r\n", "-ERR no\r\n", "-MOVED 1 127.0.0.1:1\r\n", "-TRYAGAIN no\r\n", "-CLUSTERDOWN no\r\n",
				"-READONLY no\r\n", "-NOSCRIPT no\r\n"} {
				bubble(t, func(t *testing.T) {
					n := &scripted{}
					c := warm(t, n)
					defer c.Close()
					p, replies, outcomes := held(t, c, n, calls(size)...)
					p.say(strings.Join(append(replies[:from:from], replies[to:]...), ""))
					if next != "" { // another call, and what it is answered
						synctest.Wait()
						n.answer = func(p *peer, args []string) string {
							if args[0] != "PING" {
								return next
							}
							return usual(p, args)
						}
						ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
						defer cancel()
						if reply, err := c.Run(ctx, call(5)); err == nil && reply[0] != 5 {
							t.Errorf("the next call was given %v", reply)
						}
					}
					if got := verdicts(outcomes()); got != strings.TrimSpace(strings.Repeat("ambiguous ", size)) {
						t.Errorf("%d to %d swallowed, then %q: %s", from, to-1, next, got)
					}
					synctest.Wait()
					n.answer = usual
					want(t, t.Context(), c, call(6), "ok")
				})
			}
		}
	}
}

// A reply that nobody asked for, wherever it comes, is nobody's.
func TestUnaskedReplies(t *testing.T) {
	for at := range 4 {
		bubble(t, func(t *testing.T) {
			n := &scripted{}
			c := warm(t, n)
			defer c.Close()
			p, replies, outcomes := held(t, c, n, calls(3)...)
			p.say(strings.Join(replies[:at], "") + ":9\r\n" + strings.Join(replies[at:], ""))
			if got := verdicts(outcomes()); got != "ambiguous ambiguous ambiguous" {
				t.Errorf("at %d: %s", at, got)
			}
			want(t, t.Context(), c, call(4), "ok")
		})
	}
	// Behind all replies it harms nobody.
	bubble(t, func(t *testing.T) {
		n := &scripted{}
		c := warm(t, n)
		defer c.Close()
		p, replies, outcomes := held(t, c, n, calls(3)...)
		p.say(strings.Join(replies, "") + ":9\r\n")
		if got := verdicts(outcomes()); got != "ok ok ok" {
			t.Error(got)
		}
		synctest.Wait()
		want(t, t.Context(), c, call(4), "ok")
		time.Sleep(time.Second)
		n.answer = func(p *peer, args []string) string {
			if args[0] == "PING" {
				return usual(p, args) + ":9\r\n"
			}
			return usual(p, args)
		}
		for i := range int64(3) { // alone, too
			want(t, t.Context(), c, call(i), "ok")
			time.Sleep(time.Second)
		}
	})
}

// The node's bytes may come in any pieces.
func TestRepliesInPieces(t *testing.T) {
	for size := 1; size < 12; size++ {
		bubble(t, func(t *testing.T) {
			n := &scripted{}
			c := warm(t, n)
			defer c.Close()
			p, replies, outcomes := held(t, c, n, calls(20)...)
			whole := strings.Join(replies, "")
			for len(whole) > 0 {
				p.say(whole[:min(size, len(whole))])
				whole = whole[min(size, len(whole)):]
				synctest.Wait()
			}
			if got := verdicts(outcomes()); strings.Count(got, "ok") != 20 {
				t.Errorf("pieces of %d bytes: %s", size, got)
			}
		})
	}
}

// A connection that ends anywhere before the last byte of the replies makes all calls
// ambiguous, and those that come after it none.
func TestRepliesCut(t *testing.T) {
	whole := ":1\r\n:2\r\n:3\r\n" + echo("1")
	for length := range len(whole) + 1 {
		bubble(t, func(t *testing.T) {
			n := &scripted{}
			c := warm(t, n)
			defer c.Close()
			p, replies, outcomes := held(t, c, n, calls(3)...)
			if sent := strings.Join(replies, ""); sent != whole {
				t.Fatalf("the replies are %q", sent)
			}
			p.say(whole[:length])
			synctest.Wait()
			p.conn.Close()
			right := "ambiguous ambiguous ambiguous"
			if length == len(whole) {
				right = "ok ok ok"
			}
			if got := verdicts(outcomes()); got != right {
				t.Errorf("cut after %q: %s, want %s", whole[:length], got, right)
			}
			want(t, t.Context(), c, call(4), "ok")
		})
	}
}

// What is no reply ends the connection, and is bounded.
func TestGarbage(t *testing.T) {
	for _, garbage := range []string{
		"x", "\r\n", "\n", "HTTP/1.1 400 Bad Request\r\n", "*x\r\n", "$x\r\n", "*99999999999999999999\r\n", "$99999999999999999999\r\n",
		"%1\r\n", "_\r\n", "#t\r\n", ">1\r\n", "$2000000\r\n",
		strings.Repeat("*1\r\n", 100), "-" + strings.Repeat("x", 2*maxReply), strings.Repeat("x", 2*maxReply),
		"*1000\r\n" + strings.Repeat(fmt.Sprintf("$%d\r\n%s\r\n", maxReply, strings.Repeat("x", maxReply)), 8),
	} {
		bubble(t, func(t *testing.T) {
			n := &scripted{}
			c := warm(t, n)
			defer c.Close()
			p, _, outcomes := held(t, c, n, calls(2)...)
			l := nodeLane(c)
			l.mu.Lock()
			k := l.link
			l.mu.Unlock()
			opened := n.opened()
			p.say(garbage)
			if got := verdicts(outcomes()); got != "ambiguous ambiguous" {
				t.Errorf("%.40q: %s", garbage, got)
			}
			if n.opened() != opened {
				t.Errorf("%.40q: the calls were sent again", garbage)
			}
			synctest.Wait() // who has read is gone
			l.mu.Lock()
			size := cap(k.in)
			l.mu.Unlock()
			if size > 8*maxReply {
				t.Errorf("%.40q: a buffer of %d bytes", garbage, size)
			}
			want(t, t.Context(), c, call(3), "ok")
		})
	}
}

// A node that is busy or loading refuses PING as well as the calls: none of them ran.
func TestRefusedSeal(t *testing.T) {
	for _, refusal := range []string{"-BUSY Redis is busy running a script.\r\n", "-LOADING Redis is loading the dataset in memory\r\n", "-MASTERDOWN Link with MASTER is down\r\n"} {
		bubble(t, func(t *testing.T) {
			n := &scripted{}
			c := warm(t, n)
			defer c.Close()
			p, _, outcomes := held(t, c, n, calls(3)...)
			p.say(strings.Repeat(refusal, 4))
			if got := verdicts(outcomes()); got != "ok ok ok" { // when sent again
				t.Errorf("%q: %s", refusal, got)
			}
			// A reply whose seal was refused may be another's.
			p, _, outcomes = held(t, c, n, calls(2)...)
			p.say(":2\r\n" + strings.Repeat(refusal, 2))
			if got := verdicts(outcomes()); got[:9] != "ambiguous" {
				t.Errorf("%q: %s", refusal, got)
			}
		})
	}
}
