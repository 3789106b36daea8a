package limiter_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/slotlimit/slotlimit/cluster"
	"github.com/slotlimit/slotlimit/cluster/clustertest"
	"github.com/slotlimit/slotlimit/keys"
	"github.com/slotlimit/slotlimit/limiter"
)

// newLimiter returns a limiter of the cluster, with a time-out that no call meets
// unless its node hangs: such calls get a deadline of their own.
func newLimiter(t *testing.T, c *clustertest.Cluster, limit limiter.Limit, opts ...limiter.Option) *limiter.Limiter {
	t.Helper()
	return newLimiterWithin(t, c, 20*time.Second, limit, opts...)
}

// newLimiterWithin is for tests in which a node hangs when nobody but the client itself
// asks it, about the topology, which takes the time-out.
func newLimiterWithin(t *testing.T, c *clustertest.Cluster, timeout time.Duration, limit limiter.Limit, opts ...limiter.Option) *limiter.Limiter {
	t.Helper()
	client, err := cluster.Open(t.Context(), cluster.Config{Addrs: c.Addrs(), Timeout: timeout})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	lim, err := limiter.New(client, limit, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return lim
}

// midday makes windows predictable: 20 s before a minute's end.
var midday = time.UnixMilli(1748390440_000)

func stopped() time.Time { return midday }

// scripts counts the calls of scripts that reached any node.
func scripts(c *clustertest.Cluster) int {
	return c.Requests(clustertest.AllNodes, "EVALSHA") + c.Requests(clustertest.AllNodes, "EVAL")
}

// soon is a deadline for a call that must fail.
func soon(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	t.Cleanup(cancel)
	return ctx
}

// allow is one attempt that must get a decision.
func allow(t *testing.T, lim limiter.Allower, user string) limiter.Result {
	t.Helper()
	res, err := lim.AllowN(t.Context(), user, 1)
	if err != nil {
		t.Fatalf("%s: %v", user, err)
	}
	return res
}

// userOf returns a user whose keys the node serves.
func userOf(c *clustertest.Cluster, node int) string {
	for i := 0; ; i++ {
		if user := fmt.Sprint("u", i); c.Owner(keys.Slot("rl:{"+user+"}:")) == node {
			return user
		}
	}
}

func TestSeedExample(t *testing.T) {
	c := start(t, clustertest.WithClock(stopped))
	res := allow(t, newLimiter(t, c, limiter.PerMinute(100)), "alice")
	if res.Key != "rl:{alice}:29139840" || res.Window != 29139840 || res.ResetAfter != 20*time.Second {
		t.Errorf("%+v", res)
	}
}

// Nodes that disagree about the time by hours, callers that do too: each user
// has one count, in the window of the user's node, and steady state is one trip.
func TestSkewedNodes(t *testing.T) {
	c := start(t, clustertest.WithClock(stopped))
	c.SetSkew(1, time.Hour)
	c.SetSkew(2, -time.Hour)
	var callers []*limiter.Limiter
	for _, skew := range []time.Duration{0, time.Hour, -time.Hour} {
		callers = append(callers, newLimiter(t, c, limiter.PerMinute(100),
			limiter.WithClock(func() time.Time { return midday.Add(skew) })))
	}
	const rounds = 3
	for round := range rounds {
		c.ResetCounts()
		for node, window := range []int64{29139840, 29139840 + 60, 29139840 - 60} {
			for i, caller := range callers {
				res := allow(t, caller, userOf(c, node))
				if want := int64(round*len(callers) + i + 1); res.Count != want || res.Window != window {
					t.Errorf("node %d: count %d in window %d, want %d in %d", node, res.Count, res.Window, want, window)
				}
			}
		}
		if trips := scripts(c); round > 0 && trips != 3*len(callers) {
			t.Errorf("round %d: %d calls for %d decisions", round, trips, 3*len(callers))
		}
	}
}

// A window's end by the node's clock starts the count anew, whatever the caller thinks.
func TestNextWindow(t *testing.T) {
	c := start(t, clustertest.WithClock(stopped))
	lim := newLimiter(t, c, limiter.PerMinute(1), limiter.WithClock(stopped))
	allow(t, lim, "alice")
	denied := allow(t, lim, "alice")
	if denied.Allowed || denied.RetryAfter != 20*time.Second {
		t.Fatalf("%+v", denied)
	}
	c.Advance(denied.RetryAfter - time.Millisecond)
	if res := allow(t, lim, "alice"); res.Allowed || res.RetryAfter != time.Millisecond {
		t.Errorf("1 ms before the end: %+v", res)
	}
	c.Advance(time.Millisecond)
	if res := allow(t, lim, "alice"); !res.Allowed || res.Count != 1 || res.Window != denied.Window+1 {
		t.Errorf("at the end: %+v", res)
	}
	// The old counter is there until its grace is over, and then is gone.
	old := c.Primary(0)
	for shard := range clustertest.Shards {
		if node := c.Primary(shard); c.Owner(keys.Slot(denied.Key)) == node {
			old = node
		}
	}
	if n := len(c.Keys(old)); n != 2 {
		t.Errorf("%d counters within the grace, want 2", n)
	}
	c.Advance(limiter.DefaultGrace + time.Millisecond) // a key is there in the very ms of its expiry
	if n := len(c.Keys(old)); n != 1 {
		t.Errorf("%d counters after the grace, want 1", n)
	}
}

// A clock that steps back by less than the grace finds the counters of the window
// that it is in again.
func TestClockStepsBack(t *testing.T) {
	c := start(t, clustertest.WithClock(stopped))
	lim := newLimiter(t, c, limiter.PerMinute(10), limiter.WithClock(stopped))
	allow(t, lim, "alice")
	c.Advance(20*time.Second + limiter.DefaultGrace/2)
	if res := allow(t, lim, "alice"); res.Count != 1 {
		t.Fatalf("next window: %+v", res)
	}
	c.Advance(-limiter.DefaultGrace)
	if res := allow(t, lim, "alice"); res.Count != 2 || res.Window != 29139840 {
		t.Errorf("back in the first window: %+v, want its second attempt", res)
	}
}

// Limiters with different graces share a counter right, if slower: the TTL that the
// one set is no riddle to the other.
func TestOtherGrace(t *testing.T) {
	c := start(t, clustertest.WithClock(stopped))
	long := newLimiter(t, c, limiter.PerMinute(10), limiter.WithClock(stopped), limiter.WithGrace(5*time.Minute))
	short := newLimiter(t, c, limiter.PerMinute(10), limiter.WithClock(stopped))
	for i, lim := range []*limiter.Limiter{long, short, long, short} {
		if res := allow(t, lim, "alice"); res.Count != int64(i+1) || res.ResetAfter != 20*time.Second {
			t.Errorf("attempt %d: %+v", i+1, res)
		}
	}
	c.Advance(30 * time.Second)
	for i, lim := range []*limiter.Limiter{short, long, short} {
		if res := allow(t, lim, "alice"); res.Count != int64(i+1) || res.Window != 29139841 || res.ResetAfter != 50*time.Second {
			t.Errorf("attempt %d of the next window: %+v", i+1, res)
		}
	}
}

// An operator who shortens a counter's life does not shorten the window.
func TestShortenedTTL(t *testing.T) {
	c := start(t, clustertest.WithClock(stopped))
	client := open(t, c.Addrs())
	lim := newLimiter(t, c, limiter.PerMinute(10), limiter.WithClock(stopped))
	key := allow(t, lim, "alice").Key
	if err := client.PExpireAt(t.Context(), key, midday.Add(5*time.Second)).Err(); err != nil {
		t.Fatal(err)
	}
	if res := allow(t, lim, "alice"); res.ResetAfter != 20*time.Second || res.Count != 2 {
		t.Errorf("%+v, want 20 s to the reset", res)
	}
}

func TestMovingSlots(t *testing.T) {
	c := start(t, clustertest.WithClock(stopped))
	lim := newLimiter(t, c, limiter.PerDay(1000))
	user := userOf(c, 0)
	slot := keys.Slot("rl:{" + user + "}:")
	count := int64(0)
	attempt := func(when string) {
		t.Helper()
		count++
		if res := allow(t, lim, user); res.Count != count {
			t.Errorf("%s: count %d, want %d", when, res.Count, count)
		}
	}
	do := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	attempt("before")
	do(c.MoveSlot(slot, 1))
	attempt("MOVED")
	do(c.BeginMove(slot, 2))
	attempt("migrating, key not moved yet")
	key := allowKey(t, lim, user)
	do(c.MoveKey(key))
	attempt("migrating, key moved: ASK")
	do(c.FinishMove(slot))
	attempt("moved")
	do(c.Failover(5))
	attempt("after a failover of its new owner")
	if n := c.Requests(clustertest.AllNodes, "ASKING"); n == 0 {
		t.Error("no call was asked to another node: the test tests nothing")
	}
}

// allowKey returns the key of the user's counter without counting.
func allowKey(t *testing.T, lim *limiter.Limiter, user string) string {
	t.Helper()
	res, err := lim.Peek(t.Context(), user)
	if err != nil {
		t.Fatal(err)
	}
	return res.Key
}

// A lost reply is told as such, and the script ran once.
func TestLostReply(t *testing.T) {
	for name, how := range map[string]clustertest.Loss{"cut": clustertest.Cut, "silence": clustertest.Silence} {
		t.Run(name, func(t *testing.T) {
			c := start(t, clustertest.WithClock(stopped))
			lim := newLimiter(t, c, limiter.PerDay(1000))
			allow(t, lim, "alice")
			fault := c.LoseReplies(clustertest.On(clustertest.AllNodes, "EVALSHA"), 1, how)
			ctx := t.Context()
			if how == clustertest.Silence {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, 500*time.Millisecond)
				defer cancel()
			}
			_, err := lim.Allow(ctx, "alice")
			var call *cluster.CallError
			if !errors.Is(err, limiter.ErrAmbiguous) || errors.Is(err, limiter.ErrUnavailable) || !errors.As(err, &call) {
				t.Fatalf("error %v, want ErrAmbiguous in a CallError", err)
			}
			if fault.Hits() != 1 {
				t.Fatalf("%d replies lost", fault.Hits())
			}
			res := allow(t, lim, "alice")
			if res.Count != 3 || call.Key != res.Key {
				t.Errorf("count %d of %q, want 3 (of %q): the call whose reply was lost counted once", res.Count, res.Key, call.Key)
			}
		})
	}
}

// An error reply in place of a run is no reason to give up, and counts nothing.
func TestPassingErrors(t *testing.T) {
	for _, reply := range []string{
		"TRYAGAIN Multiple keys request during rehashing of slot", "CLUSTERDOWN The cluster is down",
		"LOADING Redis is loading the dataset in memory", "MASTERDOWN Link with MASTER is down",
		"READONLY You can't write against a read only replica.", "BUSY Redis is busy running a script.",
		"ERR max number of clients reached",
	} {
		c := start(t, clustertest.WithClock(stopped))
		lim := newLimiter(t, c, limiter.PerDay(1000))
		allow(t, lim, "alice")
		fault := c.Fail(clustertest.On(clustertest.AllNodes, "EVALSHA"), 2, reply)
		if res := allow(t, lim, "alice"); res.Count != 2 || fault.Hits() != 2 {
			t.Errorf("%s: count %d after %d errors, want 2 after 2", reply, res.Count, fault.Hits())
		}

		// Where it does not pass, the caller hears of it by the deadline.
		fault = c.Fail(clustertest.On(clustertest.AllNodes, "EVALSHA"), -1, reply)
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		_, err := lim.Allow(ctx, "alice")
		cancel()
		if !errors.Is(err, limiter.ErrUnavailable) {
			t.Errorf("%s for ever: %v, want ErrUnavailable", reply, err)
		}
		if fault.Hits() < 2 {
			t.Errorf("%s for ever: %d calls, want it tried again", reply, fault.Hits())
		}
		fault.Stop()
		if res := allow(t, lim, "alice"); res.Count != 3 {
			t.Errorf("%s: count %d in the end, want 3", reply, res.Count)
		}
	}
}

func TestLastingErrors(t *testing.T) {
	for _, reply := range []string{
		"OOM command not allowed when used memory > 'maxmemory'.",
		"NOPERM this user has no permissions to run the 'evalsha' command",
	} {
		c := start(t)
		lim := newLimiter(t, c, limiter.PerDay(1000))
		allow(t, lim, "alice")
		fault := c.Fail(clustertest.On(clustertest.AllNodes, "EVALSHA"), -1, reply)
		if _, err := lim.Allow(t.Context(), "alice"); !errors.Is(err, limiter.ErrUnavailable) || fault.Hits() != 1 {
			t.Errorf("%s: %v after %d calls, want ErrUnavailable after 1", reply, err, fault.Hits())
		}
	}
}

func TestDeadAndHungPrimaries(t *testing.T) {
	c := start(t, clustertest.WithPartialCoverage(), clustertest.WithClock(stopped))
	lim := newLimiterWithin(t, c, 2*time.Second, limiter.PerDay(1000))
	users := []string{userOf(c, 0), userOf(c, 1), userOf(c, 2)}
	for _, user := range users {
		allow(t, lim, user)
	}
	if err := c.Kill(0); err != nil {
		t.Fatal(err)
	}
	if err := c.Hang(1); err != nil {
		t.Fatal(err)
	}
	for node, user := range users {
		ctx := t.Context()
		if node < 2 {
			ctx = soon(t)
		}
		res, err := lim.Allow(ctx, user)
		// Whether a hung node got the call depends on whether a connection was at hand.
		unavailable, ambiguous := errors.Is(err, limiter.ErrUnavailable), errors.Is(err, limiter.ErrAmbiguous)
		if ok := []bool{unavailable, unavailable != ambiguous, err == nil && res.Count == 2}[node]; !ok {
			t.Errorf("user of node %d: count %d, %v", node, res.Count, err)
		}
	}
	for _, replica := range []int{3, 4} {
		if err := c.Failover(replica); err != nil {
			t.Fatal(err)
		}
	}
	// The counts went with the failover, and the client finds the way by itself:
	// calls that go to the hung node meanwhile are lost.
	for node, user := range users {
		var res limiter.Result
		err := errors.New("not tried")
		for until := time.Now().Add(30 * time.Second); err != nil && time.Now().Before(until); {
			ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
			res, err = lim.Peek(ctx, user)
			cancel()
		}
		if want := []int64{1, 1, 2}[node]; err != nil || res.Count != want {
			t.Errorf("user of node %d after the failover: count %d, %v, want %d", node, res.Count, err, want)
		}
	}
}

// A primary that is away is the matter of its own users.
func TestAllowManyDeadPrimary(t *testing.T) {
	c := start(t, clustertest.WithPartialCoverage(), clustertest.WithClock(stopped))
	lim := newLimiterWithin(t, c, 2*time.Second, limiter.PerDay(1000))
	var items []limiter.Attempt
	for range 3 {
		for node := range 3 {
			items = append(items, limiter.Attempt{User: userOf(c, node), N: 1})
		}
	}
	for i, v := range lim.AllowMany(t.Context(), items) {
		if v.Err != nil || v.Count != int64(i/3+1) {
			t.Fatalf("item %d: count %d, %v", i, v.Count, v.Err)
		}
	}
	if err := c.Kill(1); err != nil {
		t.Fatal(err)
	}
	for i, v := range lim.AllowMany(soon(t), items) {
		if dead := i%3 == 1; dead && v.Err == nil || !dead && (v.Err != nil || v.Count != int64(i/3+4)) {
			t.Errorf("item %d: count %d, %v", i, v.Count, v.Err)
		}
	}
}

func TestCancelledContext(t *testing.T) {
	c := start(t)
	lim := newLimiter(t, c, limiter.PerDay(1000))
	allow(t, lim, "alice")
	c.ResetCounts()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := lim.Allow(ctx, "alice"); !errors.Is(err, limiter.ErrUnavailable) || !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want ErrUnavailable and context.Canceled", err)
	}
	if n := scripts(c); n != 0 {
		t.Errorf("%d calls were sent", n)
	}
}
