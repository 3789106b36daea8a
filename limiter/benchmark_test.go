package limiter_test

import (
	"context"
	"testing"
	"time"

	"github.com/slotlimit/slotlimit/cluster"
	"github.com/slotlimit/slotlimit/cluster/servertest"
	"github.com/slotlimit/slotlimit/limiter"
)

// A stub answers at once, so that a benchmark shows the limiter's own work.
type stub struct{ count int64 }

func (s *stub) Home(context.Context, string) string { return "stub" }

func (s *stub) RunAll(ctx context.Context, calls []cluster.Call) []cluster.Outcome {
	return oneByOne(ctx, s.Run, calls)
}

// oneByOne is RunAll of a Runner that has nothing to gain from it.
func oneByOne(ctx context.Context, run func(context.Context, cluster.Call) ([]int64, error), calls []cluster.Call) []cluster.Outcome {
	outcomes := make([]cluster.Outcome, len(calls))
	for i, call := range calls {
		outcomes[i].Reply, outcomes[i].Err = run(ctx, call)
	}
	return outcomes
}

func (s *stub) Run(context.Context, cluster.Call) ([]int64, error) {
	s.count++
	return []int64{1, s.count, 1000}, nil
}

func benchmarkAllow(b *testing.B, client limiter.Runner) {
	lim, err := limiter.New(client, limiter.Per(limiter.MaxRate, 24*time.Hour), limiter.WithPrefix(b.Name()))
	if err != nil {
		b.Fatal(err)
	}
	first, err := lim.Peek(b.Context(), "user-12345")
	if err != nil {
		b.Fatal(err)
	}
	var last limiter.Result
	n := int64(0)
	b.ReportAllocs()
	for b.Loop() {
		n++
		if last, err = lim.Allow(b.Context(), "user-12345"); err != nil {
			b.Fatal(err)
		}
	}
	// The workload is what it says, or the figures mean nothing.
	if last.Count-first.Count != n && last.Window == first.Window {
		b.Fatalf("%d attempts moved the count from %d to %d", n, first.Count, last.Count)
	}
}

// What a decision allocates beyond its transport: the key and the user's part of it,
// the arguments, of which two are numbers in boxes, and what the stub replies.
func TestAllowAllocations(t *testing.T) {
	lim, err := limiter.New(new(stub), limiter.PerDay(limiter.MaxRate))
	if err != nil {
		t.Fatal(err)
	}
	got := testing.AllocsPerRun(100, func() {
		if _, err := lim.Allow(t.Context(), "user-12345"); err != nil {
			t.Fatal(err)
		}
	})
	if got > 6 {
		t.Errorf("%v allocations a decision, want at most 6", got)
	}
}

func BenchmarkAllowStub(b *testing.B) { benchmarkAllow(b, new(stub)) }

func BenchmarkAllowServers(b *testing.B) {
	benchmarkAllow(b, open(b, servertest.Shared(b).Addrs()))
}
