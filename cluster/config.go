package cluster

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// Defaults of a Config's fields.
const (
	DefaultTimeout     = time.Second
	DefaultDialTimeout = time.Second
)

// Bounds of a Config's fields: a day, and more connections than a node accepts.
const (
	maxTimeout  = 24 * time.Hour
	maxPoolSize = 100_000
)

// Config says how [Open] reaches a cluster. The zero value lacks only Addrs.
type Config struct {
	// Addrs are some of the nodes, host:port. One is enough while it is up; the
	// rest of the cluster is learned from it. Required.
	Addrs []string

	// Username and Password authenticate every connection. Without a username
	// the password is the default user's.
	Username, Password string

	// TLS makes every connection use TLS. Nil means plain TCP.
	TLS *tls.Config

	// AddrMap replaces addresses, host:port to host:port, before they are dialled:
	// for nodes that announce addresses which do not lead to them from here, behind
	// NAT, a port-forward or a container network. Others are dialled as they are.
	AddrMap map[string]string

	// Dialer opens a connection to an address that AddrMap has already replaced.
	// Nil means TCP with DialTimeout. With TLS, it must speak TLS itself. It must heed ctx:
	// calls for a node wait while it dials, until their deadlines.
	Dialer func(ctx context.Context, network, addr string) (net.Conn, error)

	// Timeout bounds one call of [Client.Run], the repeats after redirects and
	// passing refusals included; a sooner deadline of the caller holds all the same.
	// The longer, the more calls live through a failover; the shorter, the fewer
	// callers pile up before a node that hangs. Default 1 s.
	Timeout time.Duration

	// DialTimeout bounds the opening of one connection. Default 1 s.
	DialTimeout time.Duration

	// PoolSize is the number of connections to each node. Default 10 for each
	// processor that the Go scheduler uses. A caller waits while all are in use.
	PoolSize int
}

// ParseURL returns the Config that a URL describes:
//
//	redis://USER:PASSWORD@HOST:PORT?addr=HOST2:PORT2&addr=HOST3:PORT3
//
// The scheme rediss means TLS. Of the other parameters that go-redis knows,
// dial_timeout, read_timeout (Timeout) and pool_size have a meaning here.
func ParseURL(url string) (Config, error) {
	o, err := redis.ParseClusterURL(url)
	if err != nil {
		// The cause may quote the URL, and with it the password.
		return Config{}, fmt.Errorf("%w: URL: want redis://USER:PASSWORD@HOST:PORT?addr=HOST2:PORT2", ErrConfig)
	}
	return Config{
		Addrs: o.Addrs, Username: o.Username, Password: o.Password, TLS: o.TLSConfig,
		Timeout: o.ReadTimeout, DialTimeout: o.DialTimeout, PoolSize: o.PoolSize,
	}, nil
}

// validated returns the configuration with its defaults filled in.
func (cfg Config) validated() (Config, error) {
	if len(cfg.Addrs) == 0 {
		return cfg, fmt.Errorf("%w: Addrs: no address", ErrConfig)
	}
	for _, addr := range cfg.Addrs {
		if _, port, err := net.SplitHostPort(addr); err != nil || port == "" {
			return cfg, fmt.Errorf("%w: Addrs: %q is not host:port", ErrConfig, addr)
		}
	}
	if min(cfg.Timeout, cfg.DialTimeout) < 0 || max(cfg.Timeout, cfg.DialTimeout) > maxTimeout {
		return cfg, fmt.Errorf("%w: Timeout %v, DialTimeout %v: want 0 to %v", ErrConfig, cfg.Timeout, cfg.DialTimeout, maxTimeout)
	}
	if cfg.PoolSize < 0 || cfg.PoolSize > maxPoolSize {
		return cfg, fmt.Errorf("%w: PoolSize %d: want 0 to %d", ErrConfig, cfg.PoolSize, maxPoolSize)
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = DefaultTimeout
	}
	if cfg.DialTimeout == 0 {
		cfg.DialTimeout = DefaultDialTimeout
	}
	return cfg, nil
}

// dial opens a connection for every client that the configuration makes.
func (cfg Config) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	if mapped, ok := cfg.AddrMap[addr]; ok {
		addr = mapped
	}
	if cfg.Dialer != nil {
		return cfg.Dialer(ctx, network, addr)
	}
	d := net.Dialer{Timeout: cfg.DialTimeout}
	if cfg.TLS != nil {
		return (&tls.Dialer{NetDialer: &d, Config: cfg.TLS}).DialContext(ctx, network, addr)
	}
	return d.DialContext(ctx, network, addr)
}

// options are the settings that are safe to count with. Where one differs from
// go-redis's default, the reason is a measured one.
func (cfg Config) options() *redis.ClusterOptions {
	return &redis.ClusterOptions{
		Addrs:    cfg.Addrs,
		Username: cfg.Username,
		Password: cfg.Password,
		Dialer:   cfg.dial,
		PoolSize: cfg.PoolSize,

		// One attempt at a connection: Run repeats, with the deadline in view. By
		// default a dead node is dialled five times before anyone hears of it.
		DialTimeout:   cfg.DialTimeout,
		DialerRetries: 1,

		// By default a caller's deadline does not end a read, and a call with 50 ms
		// left returns after seconds.
		ContextTimeoutEnabled: true,
		ReadTimeout:           cfg.Timeout,
		WriteTimeout:          cfg.Timeout,
		PoolTimeout:           cfg.Timeout,

		// A picture of the cluster that is a minute old, the default, sends calls to
		// a dead primary for a minute.
		ClusterStateReloadInterval: time.Second,

		// For every command that it does not know, go-redis asks a node's COMMAND, and
		// where the ACL forbids that, again before each call.
		DisableRoutingPolicies: true,

		// Both send commands on every new connection that Redis 7 answers with errors.
		DisableIdentity:          true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
}
