package httplimit_test

import (
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/slotlimit/slotlimit/cluster"
	"github.com/slotlimit/slotlimit/cluster/clustertest"
	"github.com/slotlimit/slotlimit/cluster/servertest"
	"github.com/slotlimit/slotlimit/limiter"
)

func TestMain(m *testing.M) { os.Exit(servertest.Main(m).Run()) }

func newLimiter(t *testing.T, addrs []string) *limiter.Limiter {
	t.Helper()
	client, err := cluster.Open(t.Context(), cluster.Config{Addrs: addrs, Timeout: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	lim, err := limiter.New(client, limiter.PerDay(100), limiter.WithPrefix("http"))
	if err != nil {
		t.Fatal(err)
	}
	return lim
}

func TestPassesInProcess(t *testing.T) { passes(t, newLimiter(t, clustertest.Start(t).Addrs())) }

func TestPassesOnServers(t *testing.T) {
	c := servertest.Shared(t)
	passes(t, newLimiter(t, c.Addrs()))
	c.CheckKeys(t, "http:")
}

// A dead cluster is no reason to tell a client that it asks too often.
func TestDeadCluster(t *testing.T) {
	c := clustertest.Start(t)
	client, err := cluster.Open(t.Context(), cluster.Config{Addrs: c.Addrs(), Timeout: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	lim, err := limiter.New(client, limiter.PerDay(100))
	if err != nil {
		t.Fatal(err)
	}
	if resp := get(lim); resp.StatusCode != http.StatusOK {
		t.Fatalf("status %d before", resp.StatusCode)
	}
	for node := range clustertest.Nodes {
		if err := c.Kill(node); err != nil {
			t.Fatal(err)
		}
	}
	if resp := get(lim); resp.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("status %d of a dead cluster, want 503", resp.StatusCode)
	}
}
