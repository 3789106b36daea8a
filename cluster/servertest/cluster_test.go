package servertest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// deadline is for waits on real processes: far more than they need.
func deadline(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	t.Cleanup(cancel)
	return ctx
}

// fill sets n keys with the prefix, all with a TTL, through a plain cluster client.
func fill(t *testing.T, c *Cluster, prefix string, n int) {
	t.Helper()
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: c.Addrs()})
	defer client.Close()
	for i := range n {
		if err := client.Set(deadline(t), fmt.Sprint(prefix, i), i, time.Hour).Err(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestStart(t *testing.T) {
	var c *Cluster
	t.Run("runs", func(t *testing.T) {
		c = Start(t, WithNodeTimeout(3*time.Second), WithArgs("--maxmemory", "123456789"))
		ctx := deadline(t)
		for i, want := range c.Nodes()[:3] {
			for _, slot := range []int{i * slots / 3, (i+1)*slots/3 - 1} {
				if got, err := c.Owner(ctx, slot); err != nil || got != want {
					t.Errorf("the owner of slot %d: %v, %v; want node %d", slot, got, err, i)
				}
			}
			if got, err := c.Replica(ctx, want); err != nil || got != c.Nodes()[i+3] {
				t.Errorf("the replica of node %d: %v, %v; want node %d", i, got, err, i+3)
			}
		}
		for i, n := range c.Nodes() {
			if n.Addr != c.Addrs()[i] || n.Addr != n.Client.Options().Addr || n.PID() == 0 {
				t.Errorf("node %d: %s, %s, process %d", i, n.Addr, c.Addrs()[i], n.PID())
			}
			for option, want := range map[string]string{"maxmemory": "123456789", "cluster-node-timeout": "3000"} {
				if got := n.Client.ConfigGet(ctx, option).Val()[option]; got != want {
					t.Errorf("node %d has %s %q, want %s", i, option, got, want)
				}
			}
		}
		fill(t, c, "start:", 300)
		if got := c.CheckKeys(t, "start:"); got != 300 {
			t.Errorf("%d keys of 300", got)
		}
		if err := c.FlushAll(ctx); err != nil {
			t.Fatal(err)
		}
		if got := c.CheckKeys(t, ""); got != 0 {
			t.Errorf("%d keys after FlushAll", got)
		}
	})
	if c == nil {
		return // skipped
	}
	for _, n := range c.Nodes() {
		if conn, err := net.Dial("tcp", n.Addr); err == nil {
			conn.Close()
			t.Errorf("%s still answers after the end of the test", n.Addr)
		}
		if n.PID() != 0 {
			t.Errorf("%s still has a process", n.Addr)
		}
	}
}

func TestStartFails(t *testing.T) {
	bin := binary(t)
	_, err := start(t.Context(), bin, t.TempDir(), WithArgs("--no-such-option", "1"))
	if err == nil || !strings.Contains(err.Error(), "ended") || !strings.Contains(err.Error(), "no-such-option") {
		t.Errorf("a server that cannot start: %v; want that it ended, and its own words why", err)
	}
	if got := strings.Count(fmt.Sprint(err), "ended"); got != nodes {
		t.Errorf("%d attempts to start %d servers: another port does not cure this", got, nodes)
	}
}

func TestPortTaken(t *testing.T) {
	bin := binary(t)
	cfg := config{nodeTimeout: time.Second}
	first, err := startNode(t.Context(), bin, t.TempDir(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Client.Close()
	defer first.stop()
	second := newNode(bin, t.TempDir(), first.Client.Options().Addr, cfg)
	defer second.Client.Close()
	if err := second.start(t.Context()); !errors.Is(err, errPortTaken) {
		t.Errorf("two servers on one port: %v", err)
	}
	if second.PID() != 0 {
		t.Error("the second server runs")
	}
}

func TestShared(t *testing.T) {
	c := Shared(t)
	if again := Shared(t); again != c {
		t.Error("two shared clusters in one test binary")
	}
	if r := record(t, func(tb testing.TB) {
		shared.mu.Lock()
		shared.open = false
		shared.mu.Unlock()
		Shared(tb)
	}); !r.failed || !r.says("TestMain") {
		t.Errorf("without Main: failed %t, said %q", r.failed, r.lines)
	}
	shared.mu.Lock()
	shared.open = true
	shared.mu.Unlock()
}

func TestFormOddNumber(t *testing.T) {
	for _, n := range []int{0, 1, 3} {
		if err := Form(t.Context(), make([]Member, n)); err == nil {
			t.Errorf("a cluster of %d servers was formed", n)
		}
	}
}
