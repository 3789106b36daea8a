package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/slotlimit/slotlimit/cluster"
	"github.com/slotlimit/slotlimit/cluster/clustertest"
	"github.com/slotlimit/slotlimit/keys"
)

// durably is incr, acknowledged when one replica has it.
func durably(key string) cluster.Call {
	call := incr(key)
	call.Durable.Replicas = 1
	return call
}

// durableClients are the ways to a client, each with go-redis's retries as they are there.
var durableClients = map[string]func(*testing.T, *clustertest.Cluster) *cluster.Client{
	"opened": func(t *testing.T, c *clustertest.Cluster) *cluster.Client {
		return open(t, cluster.Config{Addrs: c.Addrs()})
	},
	"wrapped": func(t *testing.T, c *clustertest.Cluster) *cluster.Client {
		client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: c.Addrs(), MaxRetries: 3})
		// So that it has met nodes before anything is attached to them.
		if err := client.Get(t.Context(), keyOf(c, 0)).Err(); err != redis.Nil {
			t.Fatal(err)
		}
		return wrap(t, client)
	},
	"wrapped, one server": func(t *testing.T, c *clustertest.Cluster) *cluster.Client {
		return wrap(t, redis.NewClient(&redis.Options{Addr: c.Addr(0)}))
	},
}

func wrap(t *testing.T, client redis.UniversalClient) *cluster.Client {
	t.Helper()
	t.Cleanup(func() { client.Close() })
	wrapped, err := cluster.Wrap(client)
	if err != nil {
		t.Fatal(err)
	}
	return wrapped
}

func TestDurable(t *testing.T) {
	for name, client := range durableClients {
		t.Run(name, func(t *testing.T) {
			c := clustertest.Start(t)
			client := client(t, c)
			key := keyOf(c, 0)
			for want := int64(1); want <= 3; want++ {
				if reply, err := client.Run(t.Context(), durably(key)); err != nil || len(reply) != 1 || reply[0] != want {
					t.Fatalf("%v, %v, want [%d]", reply, err, want)
				}
			}
			// NOSCRIPT first, and a question to the node before that.
			for command, want := range map[string]int{"EVALSHA": 3, "EVAL": 1, "WAIT": 5} {
				if n := c.Requests(0, command); n != want || c.Requests(clustertest.AllNodes, command) != want {
					t.Errorf("%d %s on the key's node and %d on all, want %d there", n, command,
						c.Requests(clustertest.AllNodes, command), want)
				}
			}
			// Others pay nothing.
			if _, err := client.Run(t.Context(), incr(key)); err != nil {
				t.Fatal(err)
			}
			if n := c.Requests(0, "WAIT"); n != 5 {
				t.Errorf("a call that is not durable sent WAIT")
			}
		})
	}
}

// Without a replica a call counts, and is not acknowledged.
func TestDurableUnconfirmed(t *testing.T) {
	c, client := start(t)
	if err := c.Hang(3); err != nil { // the replica of node 0
		t.Fatal(err)
	}
	key := keyOf(c, 0)
	_, err := client.Run(t.Context(), durably(key))
	if !errors.Is(err, cluster.ErrAmbiguous) || !errors.Is(err, cluster.ErrUnconfirmed) || !strings.Contains(err.Error(), "0 of 1") {
		t.Errorf("%v, want ErrAmbiguous with ErrUnconfirmed", err)
	}
	if n := c.Calls(clustertest.AllNodes, "EVAL"); n != 1 {
		t.Errorf("ran %d times, want once", n)
	}
	// One that wrote nothing has nothing to confirm.
	call := durably(key)
	call.Durable.Unwritten = func(reply []int64) bool { return reply[0] == 2 }
	if reply, err := client.Run(t.Context(), call); err != nil || reply[0] != 2 {
		t.Errorf("%v, %v, want [2]", reply, err)
	}
	if _, err := client.Run(t.Context(), call); !errors.Is(err, cluster.ErrUnconfirmed) {
		t.Errorf("%v, want ErrUnconfirmed", err)
	}
	if err := c.Resume(3); err != nil {
		t.Fatal(err)
	}
	if reply, err := client.Run(t.Context(), durably(key)); err != nil || reply[0] != 4 {
		t.Errorf("%v, %v, want [4]", reply, err)
	}
}

// moves are the redirects: what makes node 0 redirect a slot to node 1.
var moves = map[string]func(c *clustertest.Cluster, slot int) error{
	"MOVED": func(c *clustertest.Cluster, slot int) error { return c.MoveSlot(slot, 1) },
	"ASK":   func(c *clustertest.Cluster, slot int) error { return c.BeginMove(slot, 1) },
}

// It is the node that ran the script that has to confirm it.
func TestDurableRedirected(t *testing.T) {
	for name, move := range moves {
		t.Run(name, func(t *testing.T) {
			c, client := start(t)
			key := keyOf(c, 0)
			if err := move(c, keys.Slot(key)); err != nil {
				t.Fatal(err)
			}
			if err := c.Hang(4); err != nil { // the replica of node 1; that of node 0 would confirm
				t.Fatal(err)
			}
			if _, err := client.Run(t.Context(), durably(key)); !errors.Is(err, cluster.ErrUnconfirmed) {
				t.Errorf("%v, want ErrUnconfirmed", err)
			}
			if err := c.Resume(4); err != nil {
				t.Fatal(err)
			}
			if err := c.Hang(3); err != nil { // and that of node 0 is not needed
				t.Fatal(err)
			}
			c.FlushScripts(1)
			if reply, err := client.Run(t.Context(), durably(key)); err != nil || reply[0] != 2 {
				t.Errorf("%v, %v, want [2]", reply, err)
			}
		})
	}
}

// A lost reply, of the script or of the wait, never makes either run again.
func TestDurableLosesReply(t *testing.T) {
	for name, client := range durableClients {
		for _, how := range []clustertest.Loss{clustertest.Cut, clustertest.Silence} {
			for _, of := range []string{"EVALSHA", "WAIT"} {
				for _, redirect := range []string{"", "MOVED", "ASK"} {
					if redirect != "" && name == "wrapped, one server" {
						continue
					}
					t.Run(fmt.Sprint(name, how, of, redirect), func(t *testing.T) {
						t.Parallel()
						c := clustertest.Start(t)
						loseReply(t, c, client(t, c), how, of, redirect)
					})
				}
			}
		}
	}
}

func loseReply(t *testing.T, c *clustertest.Cluster, client *cluster.Client, how clustertest.Loss, of, redirect string) {
	key, node := keyOf(c, 0), 0
	if _, err := client.Run(t.Context(), durably(key)); err != nil { // the node is asked, and knows the script
		t.Fatal(err)
	}
	if redirect != "" {
		node = 1
		if _, err := client.Run(t.Context(), durably(keyOf(c, node))); err != nil {
			t.Fatal(err)
		}
		// Another key than the first, which would not be redirected by ASK.
		key = fmt.Sprintf("{%s}:absent", keys.Tag(key))
		if err := moves[redirect](c, keys.Slot(key)); err != nil {
			t.Fatal(err)
		}
	}
	c.ResetCounts()
	fault := c.LoseReplies(clustertest.On(node, of), 1, how)
	_, err := client.Run(t.Context(), durably(key))
	if !errors.Is(err, cluster.ErrAmbiguous) || fault.Hits() != 1 {
		t.Errorf("%v after %d lost replies, want ErrAmbiguous after 1", err, fault.Hits())
	}
	if errors.Is(err, cluster.ErrUnconfirmed) != (of == "WAIT") {
		t.Errorf("%v, which is not what was lost", err)
	}
	if n := c.Calls(clustertest.AllNodes, "EVALSHA"); n != 1 {
		t.Errorf("the script ran %d times, want once", n)
	}
	if n := c.Calls(node, "WAIT"); of == "WAIT" && n != 1 {
		t.Errorf("WAIT ran %d times, want once", n)
	}
}

// What passes is waited for, with the call run once.
func TestDurablePostponed(t *testing.T) {
	for _, message := range []string{"TRYAGAIN x", "CLUSTERDOWN x", "LOADING x", "MASTERDOWN x", "READONLY x"} {
		c, client := start(t)
		key := keyOf(c, 0)
		fault := c.Fail(clustertest.On(0, "EVALSHA"), 2, message)
		if reply, err := client.Run(t.Context(), durably(key)); err != nil || reply[0] != 1 || fault.Hits() != 2 {
			t.Errorf("%s: %v, %v after %d, want [1] after 2", message, reply, err, fault.Hits())
		}
		if n := c.Calls(0, "EVAL"); n != 1 {
			t.Errorf("%s: ran %d times, want once", message, n)
		}
	}
}

// A server that cannot confirm counts nothing, and says why.
func TestDurableCannotConfirm(t *testing.T) {
	c, client := start(t)
	key := keyOf(c, 0)
	call := durably(key)
	call.Durable.AOF = true
	_, err := client.Run(t.Context(), call) // the nodes are of version 7.0
	if !errors.Is(err, cluster.ErrUnavailable) || !errors.Is(err, cluster.ErrCannotConfirm) ||
		!strings.Contains(err.Error(), "7.2") || !strings.Contains(err.Error(), c.Addr(0)) {
		t.Errorf("%v, want ErrUnavailable with ErrCannotConfirm, %s and the version", err, c.Addr(0))
	}
	const noperm = "NOPERM this user has no permissions to run the 'wait' command"
	fault := c.Fail(clustertest.On(0, "WAIT"), 1, noperm)
	_, err = client.Run(t.Context(), durably(key))
	if !errors.Is(err, cluster.ErrUnavailable) || !errors.Is(err, cluster.ErrCannotConfirm) || !strings.Contains(err.Error(), "+wait") || fault.Hits() != 1 {
		t.Errorf("%v, want ErrUnavailable with ErrCannotConfirm and what to allow", err)
	}
	if n := c.Calls(clustertest.AllNodes, "EVALSHA") + c.Calls(clustertest.AllNodes, "EVAL"); n != 0 {
		t.Errorf("%d calls counted on a server that cannot confirm", n)
	}
	// Later, it is ambiguous once, and then the server is asked again.
	if _, err := client.Run(t.Context(), durably(key)); err != nil {
		t.Fatal(err)
	}
	c.Fail(clustertest.On(0, "WAIT"), -1, noperm)
	for _, want := range []error{cluster.ErrAmbiguous, cluster.ErrUnavailable} {
		if _, err := client.Run(t.Context(), durably(key)); !errors.Is(err, want) || !errors.Is(err, cluster.ErrCannotConfirm) {
			t.Errorf("%v, want %v with ErrCannotConfirm", err, want)
		}
	}
}

// Replies are lost everywhere and always, in scripts and waits; the bounds hold.
func TestDurableBounds(t *testing.T) {
	c, client := start(t)
	c.LoseFraction(clustertest.On(clustertest.AllNodes, "EVALSHA", "EVAL", "WAIT"), 0.1, 1, clustertest.Cut)
	const users, calls = 9, 100
	var acknowledged, ambiguous [users]atomic.Int64
	var wg sync.WaitGroup
	for user := range users {
		wg.Go(func() {
			for range calls {
				switch _, err := client.Run(t.Context(), durably(fmt.Sprintf("{%d}", user))); {
				case err == nil:
					acknowledged[user].Add(1)
				case errors.Is(err, cluster.ErrAmbiguous):
					ambiguous[user].Add(1)
				}
			}
		})
	}
	wg.Wait()
	unsure := int64(0)
	for user := range users {
		stored, _ := client.Get(t.Context(), fmt.Sprintf("{%d}", user)).Int64()
		least := acknowledged[user].Load()
		most := least + ambiguous[user].Load()
		unsure += ambiguous[user].Load()
		if stored < least || stored > most {
			t.Errorf("user %d: stored %d, want %d to %d", user, stored, least, most)
		}
	}
	if unsure == 0 {
		t.Error("no reply was lost")
	}
}

// A caller that gives up is let go at once, while the replica is waited for too.
func TestDurableCancelled(t *testing.T) {
	for _, of := range []string{"EVALSHA", "WAIT"} {
		c := clustertest.Start(t)
		client := open(t, cluster.Config{Addrs: c.Addrs(), Timeout: time.Hour})
		key := keyOf(c, 0)
		if _, err := client.Run(t.Context(), durably(key)); err != nil {
			t.Fatal(err)
		}
		lost := c.LoseReplies(clustertest.On(0, of), 1, clustertest.Silence)
		wantLetGo(t, client, durably(key), lost)
	}
}

// Who gives up before the sending is not counted afterwards.
func TestDurableAbandoned(t *testing.T) {
	c := clustertest.Start(t)
	client := wrap(t, redis.NewClusterClient(&redis.ClusterOptions{
		Addrs: c.Addrs(), ContextTimeoutEnabled: true,
		PoolSize: 1, PipelinePoolSize: -1, // by default pipelines have ten connections of their own
	}))
	key := keyOf(c, 0)
	if _, err := client.Run(t.Context(), durably(key)); err != nil {
		t.Fatal(err)
	}
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
	if _, err := client.Run(ctx, durably(key)); !errors.Is(err, cluster.ErrUnavailable) {
		t.Errorf("%v, want ErrUnavailable", err)
	}
	if err := taken.Close(); err != nil {
		t.Fatal(err)
	}
	if reply, err := client.Run(t.Context(), durably(key)); err != nil || reply[0] != 2 {
		t.Errorf("%v, %v, want [2]", reply, err)
	}
}

// A printer prints every command, as tracing does.
type printer struct{ redis.Hook }

func (printer) DialHook(next redis.DialHook) redis.DialHook { return next }

func (printer) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		_ = cmd.String() + fmt.Sprint(cmd.Args()...)
		return next(ctx, cmd)
	}
}

func (printer) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		for _, cmd := range cmds {
			_ = cmd.String() + fmt.Sprint(cmd.Args()...)
		}
		return next(ctx, cmds)
	}
}

// A command holds itself as an argument, and can be printed all the same.
func TestRunPrinted(t *testing.T) {
	c := clustertest.Start(t)
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: c.Addrs()})
	client.AddHook(printer{})
	client.OnNewNode(func(node *redis.Client) { node.AddHook(printer{}) })
	wrapped := wrap(t, client)
	for _, call := range []cluster.Call{incr("k"), durably("k")} {
		if _, err := wrapped.Run(t.Context(), call); err != nil {
			t.Error(err)
		}
	}
}
