package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/slotlimit/slotlimit/cluster"
	"github.com/slotlimit/slotlimit/cluster/clustertest"
	"github.com/slotlimit/slotlimit/keys"
)

// Many calls at once each run once, and each is told its own reply.
func TestRunAllMany(t *testing.T) {
	c := clustertest.Start(t)
	client := open(t, cluster.Config{Addrs: c.Addrs(), Timeout: time.Minute})
	if err := client.Preload(t.Context(), incrScript); err != nil {
		t.Fatal(err)
	}
	const users, each = 20, 1000
	calls := make([]cluster.Call, users*each)
	for i := range calls {
		calls[i] = incr(fmt.Sprintf("{%d}", i%users))
	}
	var seen [users][each + 1]bool
	for i, o := range client.RunAll(t.Context(), calls) {
		if o.Err != nil || len(o.Reply) != 1 || seen[i%users][o.Reply[0]] {
			t.Fatalf("call %d: %v, %v", i, o.Reply, o.Err)
		}
		seen[i%users][o.Reply[0]] = true
	}
	if ran := c.Calls(clustertest.AllNodes, "EVALSHA"); ran != len(calls) {
		t.Errorf("%d calls ran, want %d", ran, len(calls))
	}
}

// So many for one node do not fit at once; the rest follows.
func TestRunAllForOneNode(t *testing.T) {
	c := clustertest.Start(t)
	client := open(t, cluster.Config{Addrs: c.Addrs(), Timeout: time.Minute})
	if err := client.Preload(t.Context(), incrScript); err != nil {
		t.Fatal(err)
	}
	calls := make([]cluster.Call, 20_000)
	for i := range calls {
		calls[i] = incr("k")
	}
	seen := make([]bool, len(calls)+1)
	for i, o := range client.RunAll(t.Context(), calls) {
		if o.Err != nil || len(o.Reply) != 1 || seen[o.Reply[0]] {
			t.Fatalf("call %d: %v, %v", i, o.Reply, o.Err)
		}
		seen[o.Reply[0]] = true
	}
}

func TestRunAllNone(t *testing.T) {
	_, client := start(t)
	if outcomes := client.RunAll(t.Context(), nil); len(outcomes) != 0 {
		t.Errorf("%v", outcomes)
	}
}

// What is wrong with one call is wrong with no other.
func TestRunAllIndependent(t *testing.T) {
	c, client := start(t)
	broken := cluster.NewScript(`return redis.error_reply('ERR no')`)
	calls := []cluster.Call{
		incr(keyOf(c, 0)), {Key: keyOf(c, 0)}, incr(keyOf(c, 1)), {Script: broken, Key: keyOf(c, 1)}, incr(keyOf(c, 2)),
	}
	for i, o := range client.RunAll(t.Context(), calls) {
		if bad := i%2 == 1; bad != errors.Is(o.Err, cluster.ErrUnavailable) || !bad && (o.Err != nil || o.Reply[0] != 1) {
			t.Errorf("call %d: %v, %v", i, o.Reply, o.Err)
		}
		if e, ok := errors.AsType[*cluster.CallError](o.Err); ok && e.Key != calls[i].Key {
			t.Errorf("call %d: the error names %q", i, e.Key)
		}
	}
}

// A node that is down, or hangs, costs the calls of the others nothing.
func TestRunAllOneNodeDown(t *testing.T) {
	for name, harm := range map[string]func(c *clustertest.Cluster) error{
		"down":  func(c *clustertest.Cluster) error { return c.Kill(0) },
		"hangs": func(c *clustertest.Cluster) error { return c.Hang(0) },
	} {
		c := clustertest.Start(t, clustertest.WithPartialCoverage())
		client := open(t, cluster.Config{Addrs: c.Addrs()})
		var calls []cluster.Call
		for i := range 300 {
			calls = append(calls, incr(keyOf(c, i%3)))
		}
		for i, o := range client.RunAll(t.Context(), calls) {
			if o.Err != nil {
				t.Fatalf("call %d: %v", i, o.Err)
			}
		}
		if err := harm(c); err != nil {
			t.Fatal(err)
		}
		for i, o := range client.RunAll(t.Context(), calls) {
			if (o.Err != nil) != (i%3 == 0) {
				t.Fatalf("node 0 %s, call %d: %v", name, i, o.Err)
			}
		}
	}
}

// Whoever has gone before has nothing sent.
func TestRunAllCancelled(t *testing.T) {
	c, client := start(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for i, o := range client.RunAll(ctx, []cluster.Call{incr("a"), incr("b"), incr("c")}) {
		if !errors.Is(o.Err, cluster.ErrUnavailable) || !errors.Is(o.Err, context.Canceled) {
			t.Errorf("call %d: %v", i, o.Err)
		}
	}
	if n := c.Requests(clustertest.AllNodes, "EVALSHA"); n != 0 {
		t.Errorf("%d calls were sent", n)
	}
}

// While slots move to and fro, each call is redirected on its own, and runs once.
func TestRunAllWhileSlotsMove(t *testing.T) {
	c, client := start(t)
	const users, rounds, moves = 30, 40, 6
	var calls []cluster.Call
	for i := range users {
		calls = append(calls, incr(fmt.Sprintf("{%d}", i)))
	}
	move := func(key string, byKey bool) error {
		slot := keys.Slot(key)
		to := (c.Owner(slot) + 1) % clustertest.Shards
		if !byKey {
			return c.MoveSlot(slot, to)
		}
		return errors.Join(c.BeginMove(slot, to), c.MoveKey(key), c.FinishMove(slot))
	}
	for round := range rounds {
		var mover sync.WaitGroup
		if round > 0 { // the keys are there
			mover.Go(func() {
				for i := range moves {
					if err := move(calls[(round*moves+i)%users].Key, i%2 == 0); err != nil {
						t.Error(err)
					}
				}
			})
		}
		for i, o := range client.RunAll(t.Context(), calls) {
			if o.Err != nil || o.Reply[0] != int64(round+1) {
				t.Errorf("round %d, call %d: %v, %v", round, i, o.Reply, o.Err)
			}
		}
		mover.Wait()
	}
	if n := c.Requests(clustertest.AllNodes, "ASKING"); n == 0 {
		t.Log("nothing was asked of a node that imports a slot")
	}
}

// A client whose calls share nothing has the same outcomes, and the service's hooks see them.
func TestUnbatched(t *testing.T) {
	c, batched := start(t)
	var seen atomic.Int64
	batched.UniversalClient.(*redis.ClusterClient).AddHook(countingHook{&seen})
	client := batched.Unbatched()
	for i := range int64(10) {
		if reply, err := client.Run(t.Context(), incr("k")); err != nil || reply[0] != i+1 {
			t.Errorf("%v, %v", reply, err)
		}
	}
	before := seen.Load()
	if before < 10 {
		t.Errorf("the hook saw %d calls, want 10 at least", before)
	}
	for i, o := range client.RunAll(t.Context(), []cluster.Call{incr("k"), {Key: "k"}, incr("k")}) {
		if (o.Err != nil) != (i == 1) || i == 1 && !errors.Is(o.Err, cluster.ErrConfig) {
			t.Errorf("call %d: %v", i, o.Err)
		}
	}
	if _, err := batched.Run(t.Context(), incr("k")); err != nil {
		t.Error(err)
	}
	if seen.Load() != before+2 {
		t.Errorf("the hook saw %d calls more, want 2", seen.Load()-before)
	}
	lost := c.LoseReplies(clustertest.On(clustertest.AllNodes, "EVALSHA"), 1, clustertest.Cut)
	if _, err := client.Run(t.Context(), incr("k")); !errors.Is(err, cluster.ErrAmbiguous) || lost.Hits() != 1 {
		t.Errorf("%v", err)
	}
}

type countingHook struct{ seen *atomic.Int64 }

func (h countingHook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h countingHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		h.seen.Add(1)
		return next(ctx, cmd)
	}
}

func (h countingHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}
