package cluster

import (
	"context"
	"fmt"
	"reflect"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// A Client is a go-redis client that also runs counting scripts, at most once
// each, with [Client.Run]. Get one from [Open] or [Wrap]; the zero value is not
// usable. It is safe for use by any number of goroutines.
//
// Calls go in batches, over one connection to each node, beside those of go-redis and
// opened like them: with the same dialler, TLS and credentials. A service whose
// credentials change under way (StreamingCredentialsProvider) has its calls sent as
// [Client.Unbatched] does.
//
// The embedded client has go-redis's own habits: a command sent through it, a
// script with EVALSHA too, may run again after a lost reply. Count with Run. A
// command without a key goes to one node, and not, as with go-redis's routing
// policies, to all of those whose answers it would add up.
type Client struct {
	redis.UniversalClient

	cluster *redis.ClusterClient // the same client, nil if it is of another kind
	timeout time.Duration
	found   atomic.Bool // go-redis has a picture of the cluster

	fleet     *fleet
	unbatched bool // each call goes through go-redis, on its own

	confirmers *confirmers // for calls that are [Durable]
}

// Open returns a client of the cluster that cfg names, after a look at it.
//
// It fails with [ErrConfig] when cfg cannot work, [ErrUnreachable] when no
// address answers, [ErrNotCluster] when what answers is no cluster and
// [ErrSlotsUnserved] when a hash slot has no primary. A primary that is down
// while the cluster still counts on it is no reason to fail: a service must be
// able to start during a failover. The caller closes the client.
func Open(ctx context.Context, cfg Config) (*Client, error) {
	cfg, err := cfg.validated()
	if err != nil {
		return nil, err
	}
	if err := cfg.probe(ctx); err != nil {
		return nil, err
	}
	client := redis.NewClusterClient(cfg.options())
	c := newClient(client, client, cfg.Timeout)
	c.confirmers.attachNew(client)
	if err := c.reachPrimaries(ctx, cfg); err != nil {
		_ = c.Close()
		return nil, err
	}
	return c, nil
}

func newClient(client redis.UniversalClient, nodes *redis.ClusterClient, timeout time.Duration) *Client {
	return &Client{UniversalClient: client, cluster: nodes, timeout: timeout, confirmers: newConfirmers(), fleet: newFleet(timeout)}
}

// Close closes the client's connections, those of go-redis and its own. Calls that are under
// way end, as ErrAmbiguous if they have been sent.
func (c *Client) Close() error {
	c.fleet.close()
	return c.UniversalClient.Close()
}

// Unbatched returns a client whose calls share no connections: each goes through
// go-redis, on a connection of its pool, past the hooks that a service has added
// to its client, to trace or to meter, which see nothing of batches. It is slower, by
// how much loadtest/compare tells. Closing either client closes both.
func (c *Client) Unbatched() *Client {
	return &Client{UniversalClient: c.UniversalClient, cluster: c.cluster, timeout: c.timeout, confirmers: c.confirmers, fleet: c.fleet, unbatched: true}
}

// Wrap returns a client that sends through one which a service already has:
// a [*redis.ClusterClient], or a [*redis.Client] of a single server or behind
// Sentinel. Closing the client that is returned closes both.
//
// The settings remain the service's own. What Run promises about counting holds
// under all of them; what it promises about time needs ContextTimeoutEnabled,
// DialerRetries 1 and a short ClusterStateReloadInterval. Without DisableRoutingPolicies,
// go-redis needs the right to COMMAND, and asks again before each call where the ACL
// forbids it; with ReadOnly it needs READONLY. Each call is bounded
// by [DefaultTimeout]. ErrConfig is returned for nil and for other kinds: a
// [*redis.Ring] moves users between servers that share nothing.
func Wrap(client redis.UniversalClient) (*Client, error) {
	switch client := client.(type) {
	case *redis.ClusterClient:
		if client != nil {
			c := newClient(client, client, DefaultTimeout)
			c.unbatched = client.Options().StreamingCredentialsProvider != nil
			return c, nil
		}
	case *redis.Client:
		if client != nil {
			c := newClient(client, nil, DefaultTimeout)
			c.unbatched = client.Options().StreamingCredentialsProvider != nil
			return c, nil
		}
	}
	if client == nil || reflect.ValueOf(client).IsZero() {
		return nil, fmt.Errorf("%w: Wrap: nil client", ErrConfig)
	}
	return nil, fmt.Errorf("%w: Wrap: cannot count through a %T", ErrConfig, client)
}

// Home returns the address of the primary that owns the key's hash slot, as far
// as the client knows, or "" when it does not know. Its clock is the one that
// counts for the key. It waits for no answer, save until a wrapped client has
// found its cluster, and then no longer than [Client.Run] would.
func (c *Client) Home(ctx context.Context, key string) string {
	if c.cluster == nil {
		return ""
	}
	node, err := c.primary(ctx, c.deadline(ctx, time.Now()), key)
	if err != nil {
		return ""
	}
	return node.Options().Addr
}

// primary returns go-redis's client of the primary that owns the key's slot, as far
// as it knows. It waits only until go-redis has found the cluster for the first time.
func (c *Client) primary(ctx context.Context, deadline time.Time, key string) (*redis.Client, error) {
	if c.found.Load() {
		return c.cluster.MasterForKey(ctx, key)
	}
	// go-redis looks for the cluster in its own time, whatever the context says.
	ctx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	type answer struct {
		node *redis.Client
		err  error
	}
	found := make(chan answer, 1)
	go func() {
		node, err := c.cluster.MasterForKey(ctx, key)
		found <- answer{node, err}
	}()
	select {
	case a := <-found:
		c.found.Store(a.err == nil)
		return a.node, a.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
