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

func BenchmarkAllowStub(b *testing.B) { benchmarkAllow(b, new(stub)) }

func BenchmarkAllowServers(b *testing.B) {
	benchmarkAllow(b, open(b, servertest.Shared(b).Addrs()))
}
