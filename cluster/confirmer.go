package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// A confirmer is attached to the client of one node, as go-redis's hook, and has
// every [durable] that is sent there followed by its [wait]s on the same connection.
//
// It is the place where this can be right. A WAIT is about its own connection, and
// in a pipeline of the cluster's client it goes to a node of chance; and go-redis
// follows MOVED, ASK and READONLY above the nodes' clients, so that whichever node
// the script ends up on is the one that is asked to confirm.
type confirmer struct {
	node *redis.Client
	able [2]atomic.Bool // with WAIT and with WAITAOF: the node has shown that it can
}

var _ redis.Hook = (*confirmer)(nil)

// DialHook changes nothing.
func (h *confirmer) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook sends a durable as a pipeline, to which the waits can be added.
func (h *confirmer) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		d, ok := cmd.(*durable)
		if !ok {
			return next(ctx, cmd)
		}
		pipe := h.node.Pipeline()
		_ = pipe.Process(ctx, d) // only queues it
		_, err := pipe.Exec(ctx)
		return err
	}
}

// ProcessPipelineHook adds the waits. go-redis pipelines a script itself, behind
// ASKING. Twice attached does no harm: behind a wait there is no second one.
func (h *confirmer) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		d, ok := cmds[len(cmds)-1].(*durable)
		if !ok {
			return next(ctx, cmds)
		}
		d.said = nil
		if err := h.check(ctx, d.asks); err != nil {
			return err
		}
		deadline, _ := ctx.Deadline() // Run sees to it that there is one
		waits := d.asks.waits(ctx, deadline)
		cmds = slices.Clip(cmds)
		for _, w := range waits {
			cmds = append(cmds, w)
		}
		err := next(ctx, cmds)
		var refusal error
		for _, w := range waits {
			if no := h.refusal(w.Err()); no != nil {
				refusal = no
				h.ability(w).Store(false) // so that the next call is not counted first
			}
		}
		return d.outcome(err, waits, refusal)
	}
}

// check asks the node whether it can confirm at all, before anything counts there
// and every time until it can. The error of one that cannot is a redis.Error, as
// any refusal of a server: sending again would not help.
func (h *confirmer) check(ctx context.Context, asks Durable) error {
	if (!asks.AOF || h.able[1].Load()) && (asks.Replicas < 1 || h.able[0].Load()) {
		return nil
	}
	for _, w := range asks.waits(ctx, time.Now()) {
		if h.ability(w).Load() {
			continue
		}
		if !w.aof {
			w = newWait(ctx, 0, time.Now()) // for no replica: answered at once
		}
		err := h.node.Process(ctx, w)
		if refusal := h.refusal(err); refusal != nil {
			return refusal
		}
		if err != nil && ofConnection(err) {
			return err
		}
		// With another error the node is loading, or has become a replica: the script
		// will be told.
		h.ability(w).Store(err == nil)
	}
	return nil
}

func (h *confirmer) ability(w *wait) *atomic.Bool {
	if w.aof {
		return &h.able[1]
	}
	return &h.able[0]
}

// A refusal says why a server cannot confirm.
type refusal struct {
	node  string // its address
	reply error
}

func (r *refusal) Error() string {
	hint := ""
	switch text := r.reply.Error(); {
	case strings.HasPrefix(text, "NOPERM"):
		hint = ": allow the user +wait, or +waitaof"
	case strings.Contains(text, "unknown command"):
		hint = ": waiting for append-only files needs Redis 7.2 or Valkey 7.2"
	case strings.Contains(text, "appendonly"):
		hint = ": waiting for append-only files needs appendonly yes on every server"
	}
	return fmt.Sprintf("%v: %s replied %q%s", ErrCannotConfirm, r.node, r.reply, hint)
}

func (r *refusal) Unwrap() []error { return []error{ErrCannotConfirm, r.reply} }

// RedisError makes it a redis.Error, which it wraps.
func (r *refusal) RedisError() {}

// refusal returns an error of its type if err, an outcome of WAIT or WAITAOF, says that
// the node will never confirm; else nil.
func (h *confirmer) refusal(err error) error {
	if err == nil || ofConnection(err) {
		return nil
	}
	text := err.Error()
	if strings.HasPrefix(text, "NOPERM") || strings.Contains(text, "unknown command") ||
		strings.Contains(text, "appendonly is disabled") {
		return &refusal{node: h.node.Options().Addr, reply: err}
	}
	return nil
}

// confirmers attaches a confirmer to the client of every node.
type confirmers struct {
	turn     chan struct{} // holds one token; who has it attaches
	attached atomic.Bool
	listens  bool // to nodes that the cluster's client meets from now on; guarded by turn
}

func newConfirmers() *confirmers {
	c := &confirmers{turn: make(chan struct{}, 1)}
	c.turn <- struct{}{}
	return c
}

// attachNew attaches to the nodes of a client that has met none yet.
func (a *confirmers) attachNew(client *redis.ClusterClient) {
	client.OnNewNode(confirm)
	a.attached.Store(true)
}

// attach attaches to the nodes of a client that was wrapped, when it first has a durable
// call: to learn which nodes it has met already may take a question to one of
// them. Without an error, all have a confirmer.
func (a *confirmers) attach(ctx context.Context, c *Client) error {
	if a.attached.Load() {
		return nil
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-a.turn:
		defer func() { a.turn <- struct{}{} }()
	}
	if a.attached.Load() {
		return nil
	}
	if node, ok := c.UniversalClient.(*redis.Client); ok {
		confirm(node)
		a.attached.Store(true)
		return nil
	}
	if !a.listens {
		c.cluster.OnNewNode(confirm)
		a.listens = true
	}
	// Some perhaps for the second time.
	err := c.cluster.ForEachShard(ctx, func(_ context.Context, node *redis.Client) error {
		confirm(node)
		return nil
	})
	a.attached.Store(err == nil)
	return err
}

func confirm(node *redis.Client) { node.AddHook(&confirmer{node: node}) }
