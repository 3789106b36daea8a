package cluster

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"

	"github.com/redis/go-redis/v9"
)

// A Script is a Lua script that [Client.Run] can run. Make one with [NewScript];
// it is immutable and may be shared by any number of goroutines and clients.
//
// Its text must be constant: a server keeps every script that it ever saw, so
// text that is assembled per call fills the servers' memory.
type Script struct {
	text string
	sha  []byte // hex digits of the text's SHA-1, as EVALSHA names it
}

// NewScript returns a script with the Lua source text. No server sees it yet.
func NewScript(text string) *Script {
	sum := sha1.Sum([]byte(text))
	return &Script{text: text, sha: []byte(hex.EncodeToString(sum[:]))}
}

// A Call is one run of a script for one key. Every argument that may decide in
// which hash slot the call belongs is the key, so a redirect is exact.
type Call struct {
	Script *Script
	Key    string // KEYS[1]
	Args   []any  // ARGV; each a string, []byte, int or int64

	// Durable is what must be confirmed before the reply is an acknowledgement.
	Durable Durable
}

// encodable returns an error for a call that go-redis could not write: it would
// notice in the middle of the command, when it is too late to say that nothing left.
func (c Call) encodable() error {
	if c.Script == nil {
		return fmt.Errorf("%w: a call without a script", ErrConfig)
	}
	for i, arg := range c.Args {
		switch arg.(type) {
		case string, []byte, int, int64:
		default:
			return fmt.Errorf("%w: argument %d is a %T, not a string, bytes or an integer", ErrConfig, i+1, arg)
		}
	}
	return nil
}

// Preload puts the scripts into the script cache of every node, replicas too,
// so that the first calls after a start or a failover need not carry the text.
//
// It is best effort: caches are neither replicated nor persisted, and Run copes
// without. It returns what failed, joined, after every node was tried.
func (c *Client) Preload(ctx context.Context, scripts ...*Script) error {
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	load := func(ctx context.Context, node redis.Cmdable, name string) error {
		var errs []error
		for _, s := range scripts {
			if err := node.ScriptLoad(ctx, s.text).Err(); err != nil {
				errs = append(errs, fmt.Errorf("preload on %s: %w", name, err))
			}
		}
		return errors.Join(errs...)
	}
	if c.cluster == nil {
		return load(ctx, c.UniversalClient, "the server")
	}
	var mu sync.Mutex
	var errs []error
	// ForEachShard gives up on the first error, so it is told of none.
	err := c.cluster.ForEachShard(ctx, func(ctx context.Context, node *redis.Client) error {
		err := load(ctx, node, node.Options().Addr)
		mu.Lock()
		defer mu.Unlock()
		errs = append(errs, err)
		return nil
	})
	return errors.Join(append(errs, err)...)
}
