package httplimit_test

import (
	"crypto/rand"
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

func newLimiter(t *testing.T, addrs []string, prefix string) *limiter.Limiter {
	t.Helper()
	client, err := cluster.Open(t.Context(), cluster.Config{Addrs: addrs, Timeout: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	lim, err := limiter.New(client, limiter.Per(100, limiter.MaxPeriod), limiter.WithPrefix(prefix))
	if err != nil {
		t.Fatal(err)
	}
	return lim
}

func TestPassesInProcess(t *testing.T) {
	c := clustertest.Start(t)
	passes(t, newLimiter(t, c.Addrs(), "http"))
	if err := c.Check(); err != nil {
		t.Error(err)
	}
}

func TestPassesOnServers(t *testing.T) {
	c := servertest.Shared(t)
	prefix := "http-" + rand.Text()
	passes(t, newLimiter(t, c.Addrs(), prefix))
	c.CheckKeys(t, prefix+":")
}

// A dead cluster is no reason to tell a client that it asks too often.
func TestDeadCluster(t *testing.T) {
	c := clustertest.Start(t)
	client, err := cluster.Open(t.Context(), cluster.Config{Addrs: c.Addrs(), Timeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	lim, err := limiter.New(client, limiter.Per(100, limiter.MaxPeriod))
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
