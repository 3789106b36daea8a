package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/slotlimit/slotlimit/cluster"
	"github.com/slotlimit/slotlimit/cluster/clustertest"
	"github.com/slotlimit/slotlimit/limiter"
)

// auditTimeout is how long one answer to the audit may take: a page of a thousand counters
// from a node that is busy.
const auditTimeout = 10 * time.Second

// A target is the cluster that is put under load.
type target struct {
	calls *cluster.Client      // for the limiter under test
	audit *cluster.Client      // for the audit, with time-outs of its own
	inner *clustertest.Cluster // nil if the cluster is a real one
}

// open reaches the cluster that the options name, or starts one in this process.
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
		if t.inner, err = clustertest.New(); err != nil {
			return t, err
		}
		cfg.Addrs = t.inner.Addrs()
	}
	if t.calls, err = cluster.Open(ctx, cfg); err != nil {
		return t, err
	}
	cfg.Timeout = max(cfg.Timeout, auditTimeout)
	t.audit, err = cluster.Open(ctx, cfg)
	return t, err
}

func (t *target) close() error {
	var errs []error
	for _, c := range []*cluster.Client{t.calls, t.audit} {
		if c != nil {
			errs = append(errs, c.Close())
		}
	}
	if t.inner != nil {
		errs = append(errs, t.inner.Close())
	}
	return errors.Join(errs...)
}

// config is that of the -addrs flag: addresses, or a URL.
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
	cfg.Timeout = o.timeout
	cfg.PoolSize = o.workers // no worker waits for a connection
	return cfg, nil
}

// A setup is all that a limiter under test is made of.
type setup struct {
	target  *target
	limit   limiter.Limit
	prefix  string
	grace   time.Duration
	durable bool
}

// underTest is any limiter: the tests also judge some that are wrong on purpose.
type underTest = limiter.Allower

func newLimiter(s setup) (underTest, error) {
	options := []limiter.Option{limiter.WithPrefix(s.prefix), limiter.WithGrace(s.grace)}
	if s.durable {
		options = append(options, limiter.WithDurable(1))
	}
	return limiter.New(s.target.calls, s.limit, options...)
}
