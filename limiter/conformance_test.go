package limiter_test

import (
	"os"
	"testing"

	"github.com/slotlimit/slotlimit/cluster"
	"github.com/slotlimit/slotlimit/cluster/clustertest"
	"github.com/slotlimit/slotlimit/cluster/servertest"
	"github.com/slotlimit/slotlimit/limiter/limitertest"
)

func TestMain(m *testing.M) { os.Exit(servertest.Main(m).Run()) }

// open returns a client of the cluster at the addresses, closed with the test.
func open(t testing.TB, addrs []string) *cluster.Client {
	t.Helper()
	client, err := cluster.Open(t.Context(), cluster.Config{Addrs: addrs})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

func TestConformanceInProcess(t *testing.T) {
	c := start(t)
	limitertest.Run(t, limitertest.Target{Client: open(t, c.Addrs())})
}

// start returns an in-process cluster, and holds it to its invariant at the end.
func start(t *testing.T, opts ...clustertest.Option) *clustertest.Cluster {
	t.Helper()
	c := clustertest.Start(t, opts...)
	t.Cleanup(func() {
		if err := c.Check(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func TestConformanceOnServers(t *testing.T) {
	c := servertest.Shared(t)
	limitertest.Run(t, limitertest.Target{
		Client: open(t, c.Addrs()),
		Check: func(t testing.TB, prefix string) {
			c.CheckKeys(t, prefix)
		},
	})
}
