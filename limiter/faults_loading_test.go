package limiter_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/slotlimit/slotlimit/cluster"
	"github.com/slotlimit/slotlimit/cluster/servertest"
)

// A primary that is back and still reads its file answers LOADING, or, since it knows
// nothing of its peers yet, CLUSTERDOWN: callers wait for it, as long as their
// deadline lets them, and what they do is counted once.
func TestLoadingPrimary(t *testing.T) {
	c := servertest.Start(t, servertest.WithAppendOnly(), servertest.WithNodeTimeout(10*time.Second),
		servertest.WithArgs("--key-load-delay", "500", "--cluster-require-full-coverage", "no"))
	l := newLedger(t, openFor(t, cluster.Config{Addrs: c.Addrs(), Timeout: 30 * time.Second}), "loading")
	node := l.homeOf(t, c, "alice")
	// Each command of the file takes 0.5 ms to read back at the next start, and after
	// 1024 of them the node has an ear for clients.
	pipe := node.Client.Pipeline()
	for i := range 5000 {
		pipe.Set(t.Context(), fmt.Sprint("filler:{alice}:", i), "", time.Hour)
	}
	if _, err := pipe.Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := c.Kill(node); err != nil {
		t.Fatal(err)
	}
	restarted := make(chan error, 1)
	go func() { restarted <- c.Restart(t.Context(), node) }()
	reply := ""
	await(t, 20*time.Second, "the node answers", func() bool {
		err := node.Client.Get(t.Context(), "filler:{alice}:4999").Err()
		if err != nil {
			reply, _, _ = strings.Cut(err.Error(), " ")
		}
		return reply == "LOADING" || reply == "CLUSTERDOWN"
	})
	t.Logf("the node says %s", reply)
	if _, err := l.allow(t.Context(), "alice"); err != nil {
		t.Error(err)
	}
	if err := <-restarted; err != nil {
		t.Fatal(err)
	}
	l.wantExact(t, c)
}
