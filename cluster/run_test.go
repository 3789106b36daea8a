package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/slotlimit/slotlimit/cluster"
	"github.com/slotlimit/slotlimit/cluster/clustertest"
	"github.com/slotlimit/slotlimit/keys"
)

var incrScript = cluster.NewScript(`return {redis.call('INCRBY', KEYS[1], ARGV[1])}`)

// incr counts one on the key, and replies the count.
func incr(key string) cluster.Call {
	return cluster.Call{Script: incrScript, Key: key, Args: []int64{1}}
}

func start(t *testing.T) (*clustertest.Cluster, *cluster.Client) {
	t.Helper()
	c := clustertest.Start(t)
	return c, open(t, cluster.Config{Addrs: c.Addrs()})
}

// keyOf returns a key that the node serves.
func keyOf(c *clustertest.Cluster, node int) string {
	for i := 0; ; i++ {
		if key := fmt.Sprintf("{%d}", i); c.Owner(keys.Slot(key)) == node {
			return key
		}
	}
}

func TestRun(t *testing.T) {
	c, client := start(t)
	for want := int64(1); want <= 3; want++ {
		for node := range clustertest.Shards {
			reply, err := client.Run(t.Context(), incr(keyOf(c, node)))
			if err != nil || len(reply) != 1 || reply[0] != want {
				t.Fatalf("%v, %v, want [%d]", reply, err, want)
			}
		}
	}
	// The text goes to each node once, the digest ever after.
	if evals := c.Requests(clustertest.AllNodes, "EVAL"); evals != clustertest.Shards {
		t.Errorf("%d EVAL, want one for each primary", evals)
	}
}

func TestPreload(t *testing.T) {
	c, client := start(t)
	if err := client.Preload(t.Context(), incrScript); err != nil {
		t.Fatal(err)
	}
	if err := c.Failover(3); err != nil { // replicas were loaded too
		t.Fatal(err)
	}
	for node := 1; node <= 3; node++ {
		if _, err := client.Run(t.Context(), incr(keyOf(c, node))); err != nil {
			t.Fatal(err)
		}
	}
	if n := c.Requests(clustertest.AllNodes, "EVAL"); n != 0 {
		t.Errorf("%d EVAL after a preload", n)
	}

	// A node that refuses is told of, and the others are loaded all the same.
	for node := range clustertest.Nodes {
		c.FlushScripts(node)
	}
	c.Fail(clustertest.On(5, "SCRIPT"), -1, "LOADING Redis is loading the dataset in memory")
	if err := client.Preload(t.Context(), incrScript); err == nil || !strings.Contains(err.Error(), c.Addr(5)) {
		t.Errorf("%v, want an error that names %s", err, c.Addr(5))
	}
	if _, err := client.Run(t.Context(), incr(keyOf(c, 1))); err != nil {
		t.Fatal(err)
	}
	if n := c.Requests(clustertest.AllNodes, "EVAL"); n != 0 {
		t.Errorf("%d EVAL after a preload that failed on one node", n)
	}
}

// A script that replies what no script here replies has run: nobody may send it again.
func TestRunUnknownReply(t *testing.T) {
	_, client := start(t)
	for _, text := range []string{`return 'x'`, `return {1, 'x'}`, `return {{1}}`, `return {1, false}`} {
		_, err := client.Run(t.Context(), cluster.Call{Script: cluster.NewScript(text), Key: "k"})
		if !errors.Is(err, cluster.ErrAmbiguous) {
			t.Errorf("%s: %v, want ErrAmbiguous", text, err)
		}
	}
	for _, text := range []string{`return redis.error_reply('ERR no')`, `return nil`, `this is not Lua`} {
		_, err := client.Run(t.Context(), cluster.Call{Script: cluster.NewScript(text), Key: "k"})
		if !errors.Is(err, cluster.ErrUnavailable) {
			t.Errorf("%s: %v, want ErrUnavailable", text, err)
		}
	}
}

// What cannot be written is refused before anything is.
func TestRunRefusesCall(t *testing.T) {
	c, client := start(t)
	call := cluster.Call{Key: "k"} // of no script
	if _, err := client.Run(t.Context(), call); !errors.Is(err, cluster.ErrUnavailable) || !errors.Is(err, cluster.ErrConfig) {
		t.Errorf("%v, want ErrUnavailable for ErrConfig", err)
	}
	if n := c.Requests(clustertest.AllNodes, "EVALSHA"); n != 0 {
		t.Errorf("%d calls were sent", n)
	}
}

// NOSCRIPT proves that nothing ran, EVAL that follows is as ambiguous as any call.
func TestRunLosesReplyOfEval(t *testing.T) {
	c, client := start(t)
	key := keyOf(c, 0)
	lost := c.LoseReplies(clustertest.On(0, "EVAL"), 1, clustertest.Cut)
	if _, err := client.Run(t.Context(), incr(key)); !errors.Is(err, cluster.ErrAmbiguous) || lost.Hits() != 1 {
		t.Fatalf("%v after %d lost replies", err, lost.Hits())
	}
	if reply, err := client.Run(t.Context(), incr(key)); err != nil || reply[0] != 2 {
		t.Errorf("%v, %v, want [2]", reply, err)
	}
}

// After a redirect, too: the node that was redirected to runs the script once.
func TestRunLosesReplyAfterRedirect(t *testing.T) {
	for _, how := range []clustertest.Loss{clustertest.Cut, clustertest.Silence} {
		for _, redirect := range []string{"MOVED", "ASK"} {
			c, client := start(t)
			key := keyOf(c, 0)
			if err := client.Preload(t.Context(), incrScript); err != nil {
				t.Fatal(err)
			}
			slot := keys.Slot(key)
			var err error
			if redirect == "MOVED" {
				err = c.MoveSlot(slot, 1)
			} else {
				err = c.BeginMove(slot, 1)
			}
			if err != nil {
				t.Fatal(err)
			}
			lost := c.LoseReplies(clustertest.On(1, "EVALSHA"), 1, how)
			if _, err := client.Run(t.Context(), incr(key)); !errors.Is(err, cluster.ErrAmbiguous) || lost.Hits() != 1 {
				t.Errorf("%s: %v after %d lost replies, want ErrAmbiguous after 1", redirect, err, lost.Hits())
			}
			if n := c.Calls(clustertest.AllNodes, "EVALSHA"); n != 1 {
				t.Errorf("%s: the script ran %d times, want once", redirect, n)
			}
		}
	}
}

// No free connection is no reason to say "perhaps".
func TestRunWithoutConnection(t *testing.T) {
	c := clustertest.Start(t)
	client := open(t, cluster.Config{Addrs: c.Addrs(), PoolSize: 1}).Unbatched()
	key := keyOf(c, 0)
	node, err := client.UniversalClient.(*redis.ClusterClient).MasterForKey(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	taken := node.Conn()
	if err := taken.Ping(t.Context()).Err(); err != nil { // from now on it is in use
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	for name, ctx := range map[string]context.Context{"the caller's deadline": ctx, "the client's time-out": t.Context()} {
		if _, err := client.Run(ctx, incr(key)); !errors.Is(err, cluster.ErrUnavailable) {
			t.Errorf("%s: %v, want ErrUnavailable", name, err)
		}
	}
	if err := taken.Close(); err != nil {
		t.Fatal(err)
	}
	if reply, err := client.Run(t.Context(), incr(key)); err != nil || reply[0] != 1 {
		t.Errorf("%v, %v, want [1]", reply, err)
	}
}

func TestHome(t *testing.T) {
	c, client := start(t)
	for node := range clustertest.Shards {
		if home := client.Home(t.Context(), keyOf(c, node)); home != c.Addr(node) {
			t.Errorf("home of a key of node %d is %q, want %q", node, home, c.Addr(node))
		}
	}
}

// With the client's time-out as the only bound, a hung node costs no more than that.
func TestRunTimeout(t *testing.T) {
	c, client := start(t)
	if _, err := client.Run(t.Context(), incr(keyOf(c, 0))); err != nil {
		t.Fatal(err)
	}
	if err := c.Hang(0); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Run(t.Context(), incr(keyOf(c, 0))); !errors.Is(err, cluster.ErrAmbiguous) {
		t.Errorf("%v, want ErrAmbiguous", err)
	}
}

// A caller that gives up is let go at once, and told whether its call may count.
func TestRunCancelled(t *testing.T) {
	c := clustertest.Start(t)
	client := open(t, cluster.Config{Addrs: c.Addrs(), Timeout: time.Hour})
	key := keyOf(c, 0)
	if _, err := client.Run(t.Context(), incr(key)); err != nil {
		t.Fatal(err)
	}
	lost := c.LoseReplies(clustertest.On(0, "EVALSHA"), 1, clustertest.Silence)
	wantLetGo(t, client, incr(key), lost)
	if reply, err := client.Run(t.Context(), incr(key)); err != nil || reply[0] != 3 {
		t.Errorf("%v, %v, want [3]", reply, err)
	}
}

// wantLetGo makes a call, cancels it once its reply is lost, and wants to be told that it
// may have counted.
func wantLetGo(t *testing.T, client *cluster.Client, call cluster.Call, lost *clustertest.Fault) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		for lost.Hits() == 0 {
			time.Sleep(time.Millisecond) // it runs on another goroutine: nothing else tells
		}
		cancel()
	}()
	_, err := client.Run(ctx, call) // an hour, if it is not let go
	if !errors.Is(err, cluster.ErrAmbiguous) || !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want ErrAmbiguous and context.Canceled", err)
	}
}
