package clustertest_test

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/slotlimit/slotlimit/cluster/clustertest"
)

// BenchmarkScripts is what loadtest does by default: EVALSHA of a small limiter
// from 32 goroutines over 1,000 users, with go-redis's own cluster client.
func BenchmarkScripts(b *testing.B) {
	c := clustertest.Start(b)
	cl := client(b, c)
	ctx := context.Background()
	if err := cl.ForEachShard(ctx, func(ctx context.Context, n *redis.Client) error { return count.Load(ctx, n).Err() }); err != nil {
		b.Fatal(err)
	}
	var next atomic.Int64
	b.SetParallelism(16) // times GOMAXPROCS, two cores: 32 goroutines
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			key := "rl:{user" + strconv.FormatInt(next.Add(1)%1000, 10) + "}:1"
			if err := count.EvalSha(ctx, cl, []string{key}).Err(); err != nil {
				b.Error(err)
			}
		}
	})
	b.StopTimer()
	stored := 0
	for _, primary := range c.Primaries() {
		for _, e := range c.Dump(primary) {
			n, err := strconv.Atoi(e.Value)
			if err != nil || e.TTL <= 0 || e.TTL > time.Minute {
				b.Fatal(fmt.Sprint(e, err))
			}
			stored += n
		}
	}
	if stored != int(next.Load()) {
		b.Errorf("%d stored of %d", stored, next.Load())
	}
}
