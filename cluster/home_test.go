package cluster_test

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/slotlimit/slotlimit/cluster"
	"github.com/slotlimit/slotlimit/cluster/clustertest"
)

// A call goes first to the node that it calls its home, and after that to the one that owns its
// slot: a wrong home costs one sending.
func TestHomeOfCall(t *testing.T) {
	for _, refusal := range []string{"", "TRYAGAIN Multiple keys request during rehashing of slot"} {
		c, client := start(t)
		key, other := keyOf(c, 0), keyOf(c, 1)
		runs := map[string]func(cluster.Call) ([]int64, error){
			"Run": func(call cluster.Call) ([]int64, error) { return client.Run(t.Context(), call) },
			"RunAll": func(call cluster.Call) ([]int64, error) {
				o := client.RunAll(t.Context(), []cluster.Call{call})[0]
				return o.Reply, o.Err
			},
		}
		for _, k := range []string{key, other} { // which opens the ways
			if _, err := client.Run(t.Context(), incr(k)); err != nil {
				t.Fatal(err)
			}
		}
		count := int64(1)
		for name, run := range runs {
			call := incr(key)
			call.Home = client.Home(t.Context(), other)
			before := c.Requests(1, "EVALSHA")
			if refusal != "" {
				fault := c.Fail(clustertest.On(1, "EVALSHA"), 1, refusal)
				defer fault.Stop()
			}
			reply, err := run(call)
			count++
			if err != nil || reply[0] != count {
				t.Errorf("%s, %q: %v, %v, want [%d]", name, refusal, reply, err, count)
			}
			if sent := c.Requests(1, "EVALSHA") - before; sent != 1 {
				t.Errorf("%s, %q: sent %d times to what it called its home, want 1", name, refusal, sent)
			}
		}
	}
}

// The time that go-redis takes to find the cluster is part of the first call's.
func TestDeadlineAfterSlowDiscovery(t *testing.T) {
	c := clustertest.Start(t)
	var slow sync.Once
	client := wrap(t, redis.NewClusterClient(&redis.ClusterOptions{
		Addrs: c.Addrs(),
		Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
			slow.Do(func() { time.Sleep(cluster.DefaultTimeout * 6 / 10) })
			return new(net.Dialer).DialContext(ctx, network, addr)
		},
	}))
	fault := c.LoseReplies(clustertest.On(clustertest.AllNodes, "EVALSHA"), -1, clustertest.Silence)
	defer fault.Stop()
	start := time.Now()
	_, err := client.Run(context.Background(), incr("k"))
	if took := time.Since(start); !errors.Is(err, cluster.ErrAmbiguous) || took > cluster.DefaultTimeout*13/10 {
		t.Errorf("%v after %v, want ErrAmbiguous after %v", err, took, cluster.DefaultTimeout)
	}
}
