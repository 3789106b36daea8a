package limiter_test

import (
	"context"
	"fmt"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
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

// What a decision allocates: the key, and what the stub replies.
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
	if got > 2 {
		t.Errorf("%v allocations a decision, want at most 2", got)
	}
}

// Those who share a call allocate nothing of their own.
func TestFollowerAllocations(t *testing.T) {
	const goroutines, rounds = 200, 50
	lim, err := limiter.New(new(distant), limiter.PerDay(limiter.MaxRate))
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	start := make(chan struct{})
	var wg sync.WaitGroup
	for range goroutines {
		wg.Go(func() {
			<-start
			for range rounds {
				if _, err := lim.Allow(ctx, "alice"); err != nil {
					t.Error(err)
				}
			}
		})
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	close(start)
	wg.Wait()
	runtime.ReadMemStats(&after)
	if each := float64(after.Mallocs-before.Mallocs) / (goroutines * rounds); each > 0.5 {
		t.Errorf("%.2f allocations a decision, want those of a few calls shared by many", each)
	}
}

// A distant Runner answers after the time that a round trip takes, any number of
// calls at once, with counts that are true.
type distant struct {
	calls  atomic.Int64
	counts sync.Map // by key
}

func (d *distant) Home(context.Context, string) string { return "distant" }

func (d *distant) Run(_ context.Context, call cluster.Call) ([]int64, error) {
	d.calls.Add(1)
	// A process with nothing else to do sleeps for no less than a millisecond.
	for start := time.Now(); time.Since(start) < 70*time.Microsecond; {
		runtime.Gosched()
	}
	count, ok := d.counts.Load(call.Key)
	if !ok {
		count, _ = d.counts.LoadOrStore(call.Key, new(atomic.Int64))
	}
	cost := int64(1)
	if len(call.Args) > 1 {
		cost = call.Args[1]
	}
	return []int64{1, count.(*atomic.Int64).Add(cost), 1_000_000}, nil
}

func (d *distant) RunAll(ctx context.Context, calls []cluster.Call) []cluster.Outcome {
	return oneByOne(ctx, d.Run, calls)
}

// benchmarkConcurrent has goroutines make attempts of so many users in turn.
func benchmarkConcurrent(b *testing.B, goroutines, users int) {
	d := new(distant)
	lim, err := limiter.New(d, limiter.Per(limiter.MaxRate, 24*time.Hour))
	if err != nil {
		b.Fatal(err)
	}
	names := make([]string, users)
	for i := range names {
		names[i] = fmt.Sprint("user-", i)
	}
	b.ReportAllocs()
	b.ResetTimer()
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			for i := g; i < b.N; i += goroutines {
				if _, err := lim.Allow(b.Context(), names[i*7919%users]); err != nil {
					b.Error(err)
				}
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	var counted int64
	d.counts.Range(func(_, count any) bool { counted += count.(*atomic.Int64).Load(); return true })
	if counted != int64(b.N) {
		b.Fatalf("%d counted of %d attempts", counted, b.N)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "decisions/s")
	b.ReportMetric(float64(b.N)/float64(d.calls.Load()), "decisions/call")
}

func BenchmarkHotUser(b *testing.B) {
	for _, goroutines := range []int{1, 64, 256, 1024} {
		b.Run(fmt.Sprint("goroutines=", goroutines), func(b *testing.B) { benchmarkConcurrent(b, goroutines, 1) })
	}
}

func BenchmarkUniformUsers(b *testing.B) {
	for _, goroutines := range []int{16, 64} {
		b.Run(fmt.Sprint("goroutines=", goroutines), func(b *testing.B) { benchmarkConcurrent(b, goroutines, 10_000) })
	}
}

// An attempt that is denied without asking costs no call, and allocates nothing.
func BenchmarkDeniedLocally(b *testing.B) {
	lim, err := limiter.New(new(distant), limiter.Per(1, limiter.MaxPeriod), limiter.WithDenialCache(1000))
	if err != nil {
		b.Fatal(err)
	}
	local, n := 0, 0
	b.ReportAllocs()
	for b.Loop() {
		res, err := lim.Allow(b.Context(), "user-12345")
		if err != nil {
			b.Fatal(err)
		}
		if n++; res.Local {
			local++
		}
	}
	if local < n*9/10 {
		b.Fatalf("%d of %d attempts were answered locally", local, n)
	}
}

func BenchmarkAllowStub(b *testing.B) { benchmarkAllow(b, new(stub)) }

func BenchmarkAllowServers(b *testing.B) {
	benchmarkAllow(b, open(b, servertest.Shared(b).Addrs()))
}

// An AllowMany holds all its users at once; the time for each must not grow with them.
func BenchmarkAllowMany(b *testing.B) {
	for _, users := range []int{100, 10_000, 100_000} {
		b.Run(strconv.Itoa(users), func(b *testing.B) {
			lim, err := limiter.New(new(stub), limiter.Per(limiter.MaxRate, 24*time.Hour))
			if err != nil {
				b.Fatal(err)
			}
			items := make([]limiter.Attempt, users)
			for i := range items {
				items[i] = limiter.Attempt{User: strconv.Itoa(i), N: 1}
			}
			for b.Loop() {
				if v := lim.AllowMany(b.Context(), items); v[0].Err != nil {
					b.Fatal(v[0].Err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*users), "ns/user")
		})
	}
}
