package cluster

import (
	"context"
	"errors"
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
	// One connection, which go-redis never looks at again: where dials fail as often as there may
	// be connections, it goes on dialling, so it is given room for one more. RESP2 has
	// no messages that nobody asked for.
	o.options.Protocol = 2
	o.options.PoolSize, o.options.MinIdleConns, o.options.MaxIdleConns, o.options.MaxActiveConns = 2, 0, 0, 0
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
// greeted there: who closes the client closes both. It takes DialTimeout at most.
func (o *opener) open(ctx context.Context) (net.Conn, *redis.Client, error) {
	ctx, cancel := context.WithTimeout(ctx, o.options.DialTimeout)
	defer cancel()
	// Not by go-redis, which goes on dialling in vain where it has failed once.
	conn, err := o.options.Dialer(ctx, o.options.Network, o.options.Addr)
	if err != nil {
		return nil, nil, err
	}
	options := o.options
	var handed atomic.Bool
	options.Dialer = func(context.Context, string, string) (net.Conn, error) {
		if handed.Swap(true) {
			return nil, errGreeting
		}
		return conn, nil
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() }) // go-redis heeds deadlines alone
	defer stop()
	holder := redis.NewClient(&options)
	err = holder.Ping(ctx).Err()
	if err == nil {
		err = conn.SetDeadline(time.Time{}) // go-redis left its own
	}
	if err != nil {
		_ = holder.Close()
		_ = conn.Close()
		return nil, nil, err
	}
	return conn, holder, nil
}

// errGreeting is seen by nobody: go-redis dials once more where the greeting failed.
var errGreeting = errors.New("the connection failed while it was greeted")
