package clustertest_test

import (
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/slotlimit/slotlimit/cluster/clustertest"
)

// noon is an instant for clusters whose clock stands still.
var noon = time.Date(2025, 5, 28, 12, 0, 0, 0, time.UTC)

func frozen() clustertest.Option {
	return clustertest.WithClock(func() time.Time { return noon })
}

func millis(t time.Time) string { return strconv.FormatInt(t.UnixMilli(), 10) }

func TestExpiryFollowsTheNodesClock(t *testing.T) {
	c := clustertest.Start(t, frozen())
	w := dial(t, c.Addr(2))
	w.want(fmt.Sprintf(`["%d" "0"]`, noon.Unix()), "TIME")
	w.want("+OK", "SET", "a", "1")
	w.want(":1", "PEXPIREAT", "a", millis(noon.Add(time.Minute)))
	w.want(":60000", "PTTL", "a")

	c.Advance(59999 * time.Millisecond)
	w.want(":1", "PTTL", "a")
	c.Advance(time.Millisecond)
	w.want(":0", "PTTL", "a") // the very millisecond: Redis still has the key
	w.want(`"1"`, "GET", "a")
	c.Advance(time.Millisecond)
	w.want("nil", "GET", "a")
	w.want(":-2", "PTTL", "a")
	w.want(":1", "INCR", "a") // anew, without what it had
	w.want(":-1", "PTTL", "a")
	// An instant that is not in the future deletes at once, even in its millisecond.
	w.want(":1", "PEXPIREAT", "a", millis(c.Now(2)))
	w.want(":0", "EXISTS", "a")
}

func TestScriptSeesTheNodesClock(t *testing.T) {
	c := clustertest.Start(t, frozen())
	c.SetSkew(2, -time.Hour)
	w := dial(t, c.Addr(2))
	const script = `
		redis.call('SET', KEYS[1], 'x', 'PX', 5000)
		local t = redis.call('TIME')
		return {t[1], t[2], redis.call('PTTL', KEYS[1]), redis.call('PEXPIRETIME', KEYS[1])}`
	at := noon.Add(-time.Hour)
	w.want(fmt.Sprintf(`["%d" "0" :5000 :%d]`, at.Unix(), at.UnixMilli()+5000), "EVAL", script, "1", "a")
	c.Advance(5001 * time.Millisecond)
	w.want("nil", "EVAL", "return redis.call('GET', KEYS[1])", "1", "a")
	if got := c.Now(2); !got.Equal(at.Add(5001 * time.Millisecond)) {
		t.Errorf("Now: %v", got)
	}
}

// TestReplicaAheadDeletesNothing: a replica whose clock is ahead does not show a
// key that its primary still counts with, and must not take it away either.
func TestReplicaAheadDeletesNothing(t *testing.T) {
	c := clustertest.Start(t, frozen())
	c.SetSkew(5, time.Hour)
	primary, replica := dial(t, c.Addr(2)), dial(t, c.Addr(5))
	primary.want("+OK", "SET", "a", "1", "EX", "60")
	primary.want("+OK", "SET", "{a}b", "2", "EX", "7200")
	replica.want("+OK", "READONLY")
	replica.want(`[nil "2"]`, "MGET", "a", "{a}b")
	replica.want(`["{a}b"]`, "KEYS", "*")
	replica.want("nil", "EVAL_RO", "return redis.call('GET', KEYS[1])", "1", "a")
	primary.want(`["1" "2"]`, "MGET", "a", "{a}b")
	primary.want(":60", "TTL", "a")
	if got := c.Keys(5); len(got) != 1 || got[0] != "{a}b" {
		t.Errorf("the replica's keys: %v", got)
	}
}

// TestRealTimeRuns checks that TTLs shrink by themselves, without Advance.
func TestRealTimeRuns(t *testing.T) {
	c := clustertest.Start(t)
	w := dial(t, c.Addr(2))
	expire := c.Now(2).Add(time.Hour).Truncate(time.Millisecond)
	w.want("+OK", "SET", "a", "1", "PXAT", millis(expire))
	before := c.Now(2)
	reply := w.do("PTTL", "a")
	after := c.Now(2)
	ms, err := strconv.ParseInt(reply[1:], 10, 64)
	left := time.Duration(ms) * time.Millisecond
	// One millisecond of rounding on either side.
	if err != nil || left > expire.Sub(before)+time.Millisecond || left < expire.Sub(after)-time.Millisecond {
		t.Errorf("PTTL %s, but %v to %v were left", reply, expire.Sub(after), expire.Sub(before))
	}
	w.want("+OK", "SET", "{a}gone", "1", "PX", "1")
	deadline := time.Now().Add(patience)
	for w.do("GET", "{a}gone") != "nil" {
		if time.Now().After(deadline) {
			t.Fatal("a key of one millisecond lives on")
		}
	}
}

// BenchmarkCommandAmongKeys shows why instants are kept and not TTLs counted down:
// a command costs the same among 100,000 other keys with TTLs as alone.
func BenchmarkCommandAmongKeys(b *testing.B) {
	for _, n := range []int{0, 100_000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			c := clustertest.Start(b)
			w := dial(b, c.Addr(2))
			for i := range n {
				w.send("SET", fmt.Sprintf("{a}%d", i), "1", "EX", "1000")
				w.read()
			}
			w.nc.SetDeadline(time.Time{})
			for b.Loop() {
				w.want(":1000", "EVAL", "redis.call('SET', KEYS[1], '1', 'EX', 1000) return redis.call('TTL', KEYS[1])", "1", "a")
			}
		})
	}
}

func TestClocksMoveWhileCommandsRun(t *testing.T) {
	c := clustertest.Start(t, frozen())
	var wg sync.WaitGroup
	for i := range 3 {
		w := dial(t, c.Addr(i))
		wg.Go(func() {
			for range 200 {
				w.do("TIME")
			}
		})
	}
	for i := range 200 {
		c.Advance(time.Second)
		c.SetSkew(i%3, time.Duration(i))
	}
	wg.Wait()
	c.SetSkew(0, 0)
	if got := c.Now(0); !got.Equal(noon.Add(200 * time.Second)) {
		t.Errorf("node 0 says %v", got)
	}
}
