package cluster

import (
	"context"
	"net"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A call of which it is not known whether it ran is sent again if it is Repeatable,
// and only then.
func TestRepeatable(t *testing.T) {
	for _, repeatable := range []bool{false, true} {
		for _, how := range []string{"cut", "silence"} {
			bubble(t, func(t *testing.T) {
				sent := 0
				n := &scripted{}
				c := warm(t, n)
				defer c.Close()
				n.answer = func(p *peer, args []string) string {
					if args[0] == "EVALSHA" {
						if sent++; sent <= 2 && how == "cut" {
							p.conn.Close()
							return ""
						}
					}
					if sent <= 2 {
						return ""
					}
					return usual(p, args)
				}
				right, times := "ambiguous", 1
				if repeatable {
					right, times = "ok", 3
				}
				again := call(1)
				again.Repeatable = repeatable
				want(t, t.Context(), c, again, right)
				synctest.Wait()
				if sent != times {
					t.Errorf("%s: sent %d times, want %d", how, sent, times)
				}
			})
		}
	}
}

// Once a reply is lost the call is ambiguous, whatever ends it.
func TestRepeatableNeverForgets(t *testing.T) {
	for _, end := range []string{"", "-OOM no\r\n", "-LOADING no\r\n"} { // refused connections, for ""
		bubble(t, func(t *testing.T) {
			n := &scripted{}
			c := warm(t, n)
			defer c.Close()
			if end == "" {
				n.admit = func(context.Context) error { return &net.OpError{Op: "dial", Err: os.ErrPermission} }
			}
			n.answer = func(p *peer, args []string) string {
				if p.number == 0 {
					p.conn.Close()
					return ""
				}
				if args[0] == "EVALSHA" {
					return end
				}
				return usual(p, args)
			}
			again := call(1)
			again.Repeatable = true
			want(t, t.Context(), c, again, "ambiguous")
		})
	}
}

// What waits behind a connection that has fallen silent is not held up by it, nor by
// nobody looking at contexts, which is an occasion to notice.
func TestQueueLeavesSilentConnection(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n := &scripted{}
		c := warm(t, n)
		defer c.Close()
		n.answer = silentOn(0)
		var callers sync.WaitGroup
		start := time.Now()
		for i, right := range []string{"ambiguous", "ambiguous", "ok", "ok"} { // two writes, and those that wait
			callers.Go(func() {
				want(t, context.Background(), c, call(int64(i)), right)
				if took := time.Since(start); right == "ok" && took > stall+5*time.Millisecond {
					t.Errorf("call %d took %v, want %v", i, took, stall)
				}
			})
			synctest.Wait()
		}
		callers.Wait()
	})
}
