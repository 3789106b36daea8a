package servertest

import (
	"context"
	"os"
	"sync"
	"testing"

	"go.uber.org/goleak"
)

// shared is the cluster of this test binary.
var shared struct {
	mu      sync.Mutex
	open    bool // TestMain goes through Main, which will stop it
	cluster *Cluster
	err     error // of the one attempt to start it
	dir     string
}

// A Suite is the tests of a package around which [Main] puts the shared cluster.
type Suite struct {
	m interface{ Run() int }
}

// Main is for the TestMain of a package whose tests use [Shared]:
//
//	func TestMain(m *testing.M) { os.Exit(servertest.Main(m).Run()) }
//
// [VerifyMain] looks for goroutines left behind as well.
func Main(m interface{ Run() int }) *Suite { return &Suite{m: m} }

// VerifyMain is [Main] for a package that leaves no goroutine behind: it runs the tests,
// looks, and exits.
//
//	func TestMain(m *testing.M) { servertest.VerifyMain(m) }
func VerifyMain(m interface{ Run() int }) {
	goleak.VerifyTestMain(Main(m),
		// After refused dials, go-redis's pool tries each second whether the node is
		// back, and notices only at the next try that it was closed.
		goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial"))
}

// Run runs the tests, ends the shared cluster if one of them started it, and returns
// the exit status.
func (s *Suite) Run() int {
	shared.mu.Lock()
	shared.open = true
	shared.mu.Unlock()
	defer stopShared()
	return s.m.Run()
}

// Shared returns the one cluster that the tests of this binary have in common, and starts
// it for the first that asks. It is whole then, with the default options, but
// slots and roles are where earlier tests left them: ask [Cluster.Owner]. A
// test gives its keys a prefix of its own, and does not kill, flush, or leave anything
// broken; [Start] is for those who do.
//
// The package's TestMain must go through [Main].
func Shared(tb testing.TB) *Cluster {
	tb.Helper()
	bin := binary(tb)
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if !shared.open {
		tb.Fatal("servertest: TestMain must run the tests by servertest.Main, which ends the shared cluster")
	}
	if shared.cluster == nil && shared.err == nil {
		startShared(bin)
	}
	if shared.err != nil {
		tb.Fatalf("servertest: %v", shared.err)
	}
	ctx, cancel := context.WithTimeout(tb.Context(), startTimeout)
	defer cancel()
	if err := shared.cluster.WaitWhole(ctx); err != nil {
		tb.Fatalf("servertest: an earlier test broke the shared cluster: %v", err)
	}
	return shared.cluster
}

func startShared(bin string) {
	// Neither the folder nor the context of the test that happens to be the first.
	if shared.dir, shared.err = os.MkdirTemp("", "servertest"); shared.err == nil {
		shared.cluster, shared.err = start(context.Background(), bin, shared.dir)
	}
}

func stopShared() {
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.cluster != nil {
		shared.cluster.stop()
	}
	if shared.dir != "" {
		_ = os.RemoveAll(shared.dir)
	}
	shared.open, shared.cluster, shared.err, shared.dir = false, nil, nil, ""
}
