package cluster

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
)

// probe asks the addresses in turn what they are, until one tells. An answer
// that settles the matter ends it: a server that is no cluster, or slots unserved.
func (cfg Config) probe(ctx context.Context) error {
	var errs []error
	for _, addr := range cfg.Addrs {
		slots, err := cfg.slotsOf(ctx, addr)
		switch {
		case err == nil:
			return covered(addr, slots)
		case strings.Contains(err.Error(), "cluster support disabled"):
			return fmt.Errorf("%w: %s: start it with cluster-enabled yes, or give the address of a cluster's node", ErrNotCluster, addr)
		}
		errs = append(errs, fmt.Errorf("%s: %w", addr, err))
	}
	return fmt.Errorf("%w: is it up, and are the addresses right? %w", ErrUnreachable, errors.Join(errs...))
}

func (cfg Config) slotsOf(ctx context.Context, addr string) ([]redis.ClusterSlot, error) {
	ctx, cancel := context.WithTimeout(ctx, cfg.DialTimeout+cfg.Timeout)
	defer cancel()
	all := cfg.options()
	node := redis.NewClient(&redis.Options{
		Addr: addr, Dialer: all.Dialer, Username: all.Username, Password: all.Password,
		DialTimeout: all.DialTimeout, DialerRetries: all.DialerRetries,
		ReadTimeout: all.ReadTimeout, WriteTimeout: all.WriteTimeout,
		ContextTimeoutEnabled: true, MaxRetries: -1, PoolSize: 1,
		DisableIdentity: true, MaintNotificationsConfig: all.MaintNotificationsConfig,
	})
	defer node.Close()
	//lint:ignore SA1019 go-redis itself routes by CLUSTER SLOTS: the question is whether it will find its way
	return node.ClusterSlots(ctx).Result()
}

// covered returns an error unless each hash slot has a primary.
func covered(addr string, slots []redis.ClusterSlot) error {
	missing := topologyOf(slots).Unserved()
	if len(missing) == 0 {
		return nil
	}
	texts := make([]string, len(missing))
	for i, r := range missing {
		texts[i] = r.String()
	}
	return fmt.Errorf("%w: %s says that nobody serves %s; see CLUSTER NODES there, and redis-cli --cluster fix",
		ErrSlotsUnserved, addr, strings.Join(texts, ", "))
}

// reachPrimaries returns an error when not one primary answers at the address
// that it announces: the cluster is up, but not for clients here.
func (c *Client) reachPrimaries(ctx context.Context, cfg Config) error {
	ctx, cancel := context.WithTimeout(ctx, cfg.DialTimeout+cfg.Timeout)
	defer cancel()
	var mu sync.Mutex
	var failed []error
	reached := false
	err := c.cluster.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error {
		err := node.Ping(ctx).Err()
		mu.Lock()
		defer mu.Unlock()
		if reached = reached || err == nil; err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", node.Options().Addr, err))
		}
		return nil
	})
	if reached {
		return nil
	}
	return fmt.Errorf("%w: %v answers, but its primaries do not at the addresses that they announce; AddrMap can replace these: %w",
		ErrUnreachable, cfg.Addrs, errors.Join(append(failed, err)...))
}
