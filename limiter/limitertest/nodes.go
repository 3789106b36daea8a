package limitertest

import (
	"context"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/slotlimit/slotlimit/cluster"
	"github.com/slotlimit/slotlimit/keys"
)

// CheckKeys fails the test for each key on any primary that begins with the
// prefix and has no TTL, or is not in a slot of that primary.
func CheckKeys(t testing.TB, client *cluster.Client, prefix string) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	topology, err := client.Topology(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range eachPrimary(ctx, client, func(ctx context.Context, node *redis.Client) error {
		addr := node.Options().Addr
		names := node.Scan(ctx, 0, prefix+"*", 1000).Iterator()
		for names.Next(ctx) {
			key := names.Val()
			// -1 is a key without a TTL, -2 one that expired after it was listed.
			if ttl, err := node.PTTL(ctx, key).Result(); err == nil && ttl == -1 {
				t.Errorf("key %q on %s has no TTL", key, addr)
			}
			if owner, ok := topology.Owner(keys.Slot(key)); !ok || owner.Primary.Addr != addr {
				t.Errorf("key %q, slot %d, is on %s; the slot is %v's", key, keys.Slot(key), addr, owner.Primary.Addr)
			}
		}
		return names.Err()
	}) {
		t.Errorf("reading the keys: %v", err)
	}
}

// removeKeys removes the keys that begin with the prefix, which is no pattern.
func removeKeys(t testing.TB, client *cluster.Client, prefix string) {
	t.Helper()
	for _, err := range eachPrimary(context.WithoutCancel(t.Context()), client, func(ctx context.Context, node *redis.Client) error {
		names := node.Scan(ctx, 0, prefix+"*", 1000).Iterator()
		for names.Next(ctx) {
			if err := node.Unlink(ctx, names.Val()).Err(); err != nil {
				return err
			}
		}
		return names.Err()
	}) {
		t.Errorf("removing the keys: %v", err)
	}
}

// flushScripts empties the script cache of every primary.
func (s *suite) flushScripts() {
	s.Helper()
	for _, err := range eachPrimary(s.ctx(), s.Client, func(ctx context.Context, node *redis.Client) error {
		return node.ScriptFlush(ctx).Err()
	}) {
		s.Fatal(err)
	}
}

// eachPrimary calls f for each primary, and returns what failed.
func eachPrimary(ctx context.Context, client *cluster.Client, f func(context.Context, *redis.Client) error) []error {
	var errs []error
	switch c := client.UniversalClient.(type) {
	case *redis.Client:
		if err := f(ctx, c); err != nil {
			errs = append(errs, err)
		}
	case *redis.ClusterClient:
		var mu sync.Mutex
		err := c.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error {
			err := f(ctx, node)
			if err != nil {
				mu.Lock()
				defer mu.Unlock()
				errs = append(errs, err)
			}
			return nil
		})
		if err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}
