package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/slotlimit/slotlimit/cluster"
)

// auditTimeout is how long one answer to the audit may take: a page of a thousand counters
// from a node that is busy.
const auditTimeout = 10 * time.Second

// A target is the cluster that the limiters are measured on.
type target struct {
	calls  *cluster.Client      // this limiter's
	others *redis.ClusterClient // all others' go-redis client, with its defaults
	audit  *redis.ClusterClient // for reading counters, and for asking nodes
	owner  *cluster.Client      // of audit
	own    *servers             // nil if the cluster was there before
	topo   cluster.Topology     // at the start
	nodes  []string             // addresses of the primaries
	text   string               // what it is, for people
}

// open reaches the cluster that the options name, or starts one.
func open(ctx context.Context, o options) (_ *target, err error) {
	t := &target{}
	defer func() {
		if err != nil {
			err = errors.Join(err, t.close())
		}
	}()
	cfg, err := o.config()
	if err != nil {
		return t, err
	}
	if len(cfg.Addrs) == 0 {
		if t.own, err = startServers(ctx); err != nil {
			return t, err
		}
		cfg.Addrs = t.own.addrs
	}
	if t.calls, err = cluster.Open(ctx, cfg); err != nil {
		return t, err
	}
	t.others = redis.NewClusterClient(&redis.ClusterOptions{
		Addrs: cfg.Addrs, Username: cfg.Username, Password: cfg.Password, TLSConfig: cfg.TLS, PoolSize: cfg.PoolSize,
	})
	cfg.Timeout = max(cfg.Timeout, auditTimeout)
	if t.owner, err = cluster.Open(ctx, cfg); err != nil {
		return t, err
	}
	t.audit = t.owner.UniversalClient.(*redis.ClusterClient) // what Open makes
	return t, t.describe(ctx)
}

// config is that of the -addrs flag: addresses, or a URL; and of the pool.
func (o options) config() (cfg cluster.Config, err error) {
	switch {
	case strings.Contains(o.addrs, "://"):
		if cfg, err = cluster.ParseURL(o.addrs); err != nil {
			return cfg, fmt.Errorf("-addrs: %w", err)
		}
	case o.addrs != "":
		for addr := range strings.SplitSeq(o.addrs, ",") {
			cfg.Addrs = append(cfg.Addrs, strings.TrimSpace(addr))
		}
	}
	if o.pool > 0 {
		cfg.PoolSize = o.pool
	}
	return cfg, nil
}

// describe finds out what the cluster is.
func (t *target) describe(ctx context.Context) (err error) {
	if t.topo, err = t.owner.Topology(ctx); err != nil {
		return err
	}
	for _, s := range t.topo.Shards {
		t.nodes = append(t.nodes, s.Primary.Addr)
	}
	info, err := t.audit.Info(ctx, "server").Result()
	if err != nil {
		return err
	}
	server := fields(info)
	version := "redis " + server["redis_version"]
	if server["server_name"] == "valkey" {
		version = "valkey " + server["valkey_version"]
	}
	t.text = fmt.Sprintf("%d primaries, %s, %s", len(t.nodes), strings.Join(t.nodes, ", "), version)
	return nil
}

func (t *target) close() error {
	var errs []error
	if t.calls != nil {
		errs = append(errs, t.calls.Close())
	}
	if t.others != nil {
		errs = append(errs, t.others.Close())
	}
	if t.owner != nil {
		errs = append(errs, t.owner.Close())
	}
	if t.own != nil {
		errs = append(errs, t.own.stop())
	}
	return errors.Join(errs...)
}

// cpu returns the processor time that the primaries have used so far, and false if they do not
// tell.
func (t *target) cpu(ctx context.Context) (time.Duration, bool) {
	var mu sync.Mutex
	seconds, told := 0.0, 0
	_ = t.audit.ForEachMaster(ctx, func(ctx context.Context, c *redis.Client) error {
		info, err := c.Info(ctx, "cpu").Result()
		if err != nil {
			return err
		}
		user, err := strconv.ParseFloat(fields(info)["used_cpu_user"], 64)
		if err != nil {
			return err
		}
		system, err := strconv.ParseFloat(fields(info)["used_cpu_sys"], 64)
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		seconds += user + system
		told++
		return nil
	})
	return time.Duration(seconds * float64(time.Second)), told == len(t.nodes)
}

// remove deletes all keys of this run's users. It is done also when ctx has ended.
func (t *target) remove(ctx context.Context, tag string) error {
	ctx = context.WithoutCancel(ctx)
	return t.audit.ForEachMaster(ctx, func(ctx context.Context, c *redis.Client) error {
		for cursor := uint64(0); ; {
			found, next, err := c.Scan(ctx, cursor, "*"+tag+"*", page).Result()
			if err != nil {
				return err
			}
			// One at a time, for a command's keys must be in one slot.
			pipe := c.Pipeline()
			for _, key := range found {
				pipe.Unlink(ctx, key)
			}
			if _, err := pipe.Exec(ctx); err != nil {
				return err
			}
			if cursor = next; cursor == 0 {
				return nil
			}
		}
	})
}

// fields parses the lines "name:value" of an INFO reply.
func fields(info string) map[string]string {
	m := map[string]string{}
	for line := range strings.Lines(info) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			m[name] = value
		}
	}
	return m
}
