package cluster

import (
	"context"
	"net"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// An opener opens connections to one node as go-redis does: it dials, with TLS or
// the service's own dialler, and greets, with whatever credentials, so that none of that is
// known here. The connection is then the lane's alone.
type opener struct {
	options redis.Options
}

// newOpener returns an opener for the address, with the options of a client of any node.
func newOpener(options *redis.Options, addr string) *opener {
	o := &opener{options: *options}
	o.options.Addr = addr
	// One connection, which go-redis never looks at again. RESP2 has no messages that
	// nobody asked for.
	o.options.Protocol = 2
	o.options.PoolSize, o.options.MinIdleConns, o.options.MaxIdleConns, o.options.MaxActiveConns = 1, 0, 0, 0
	o.options.MaxRetries, o.options.DialerRetries = -1, 1
	o.options.ContextTimeoutEnabled = true
	o.options.Limiter = nil
	o.options.AutoPipelineOptions = nil
	o.options.ClientSideCache, o.options.ClientSideCacheConfig = nil, nil
	o.options.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return o
}

func (o *opener) addr() string { return o.options.Addr }

// open returns a connection that is ready for commands, and the client that has
// opened it: who closes the client closes both. It takes DialTimeout at most.
func (o *opener) open() (net.Conn, *redis.Client, error) {
	options := o.options
	var dialled atomic.Pointer[net.Conn]
	options.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := o.options.Dialer(ctx, network, addr)
		if err == nil {
			dialled.Store(&conn)
		}
		return conn, err
	}
	holder := redis.NewClient(&options)
	ctx, cancel := context.WithTimeout(context.Background(), o.options.DialTimeout)
	defer cancel()
	if err := holder.Ping(ctx).Err(); err != nil {
		_ = holder.Close()
		return nil, nil, err
	}
	conn := *dialled.Load()
	if err := conn.SetDeadline(time.Time{}); err != nil { // go-redis left its own
		_ = holder.Close()
		return nil, nil, err
	}
	return conn, holder, nil
}
