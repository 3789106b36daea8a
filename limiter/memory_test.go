package limiter_test

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/slotlimit/slotlimit/cluster"
	"github.com/slotlimit/slotlimit/cluster/servertest"
	"github.com/slotlimit/slotlimit/keys"
	"github.com/slotlimit/slotlimit/limiter"
)

func TestCounterMemory(t *testing.T) {
	client := open(t, servertest.Shared(t).Addrs())
	lim, err := limiter.New(client, limiter.PerMinute(100))
	if err != nil {
		t.Fatal(err)
	}
	res := allow(t, lim, "user-12345")
	bytes, err := client.MemoryUsage(t.Context(), res.Key).Result()
	if err != nil || bytes >= 100 {
		t.Errorf("MEMORY USAGE of %s: %d bytes, %v, want under 100", res.Key, bytes, err)
	}
	t.Logf("MEMORY USAGE of %s: %d bytes", res.Key, bytes)
}

// BenchmarkMillionUsers reports what the primaries' memory grows by for each of a
// million users, keys, TTLs and hash tables included. Run it with -benchtime 1x.
func BenchmarkMillionUsers(b *testing.B) {
	const users = 1_000_000
	c := servertest.Start(b)
	client := open(b, c.Addrs())
	for b.Loop() {
		if err := c.FlushAll(b.Context()); err != nil {
			b.Fatal(err)
		}
		before := usedMemory(b, client)
		addUsers(b, client, users)
		b.ReportMetric((usedMemory(b, client)-before)/users, "bytes/user")
	}
}

// addUsers makes counters as the script leaves them, in pipelines for speed.
func addUsers(b *testing.B, client *cluster.Client, users int) {
	b.Helper()
	for from := 0; from < users; from += 10_000 {
		pipe := client.Pipeline()
		for i := from; i < from+10_000; i++ {
			key, err := keys.Layout{}.Window(fmt.Sprintf("user-%06d", i), "", limiter.PerDay(1).Period, 20000)
			if err != nil {
				b.Fatal(err)
			}
			pipe.IncrBy(b.Context(), key, 1)
			pipe.Do(b.Context(), "PEXPIREAT", key, 4102444800000)
		}
		if _, err := pipe.Exec(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

// usedMemory is the sum of the primaries' used_memory, in bytes.
func usedMemory(b *testing.B, client *cluster.Client) float64 {
	b.Helper()
	var mu sync.Mutex
	sum := 0.0
	err := client.UniversalClient.(*redis.ClusterClient).ForEachMaster(b.Context(), func(ctx context.Context, node *redis.Client) error {
		info, err := node.InfoMap(ctx, "memory").Result()
		if err != nil {
			return err
		}
		n, err := strconv.ParseFloat(info["Memory"]["used_memory"], 64)
		mu.Lock()
		defer mu.Unlock()
		sum += n
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	return sum
}
