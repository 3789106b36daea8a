package cluster

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
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

	// The beginning of every request, up to the key: NAME script 1.
	byDigest, byText []byte
}

// NewScript returns a script with the Lua source text. No server sees it yet.
func NewScript(text string) *Script {
	sum := sha1.Sum([]byte(text))
	s := &Script{text: text, sha: []byte(hex.EncodeToString(sum[:]))}
	s.byDigest = appendInteger(appendBulk(appendBulk(nil, "EVALSHA"), string(s.sha)), 1)
	s.byText = appendInteger(appendBulk(appendBulk(nil, "EVAL"), text), 1)
	return s
}

// Constants are arguments that many calls have in common. They are encoded once, by
// [NewConstants], and may be shared by any number of goroutines.
type Constants struct {
	args    []string
	request []byte // as they are written
}

// NewConstants returns the arguments for [Call.Constants].
func NewConstants(args ...string) *Constants {
	c := &Constants{args: slices.Clone(args)}
	for _, arg := range args {
		c.request = appendBulk(c.request, arg)
	}
	return c
}

// A Call is one run of a script for one key. Every argument that may decide in
// which hash slot the call belongs is the key, so a redirect is exact.
type Call struct {
	Script    *Script
	Key       string     // KEYS[1]
	Constants *Constants // what ARGV begins with, if not nil
	Args      []int64    // the rest of ARGV; not kept after Run returns

	// Home is what [Client.Home] just said of the key, if it was asked: that saves
	// Run the look-up. Any other node costs a redirect.
	Home string

	// Repeatable says that the script itself recognises a call that it has run already,
	// and replies the same again without counting. Run then sends it again, with
	// the same Args, when a reply is lost, until its deadline; only if that comes
	// first is the call ambiguous.
	Repeatable bool

	// Unsettled reports that a Repeatable script which replied so has not run, and cannot
	// tell whether an earlier sending of the call did, or still will: after a lost
	// reply, such a call is ambiguous. Nil means that every reply settles the call.
	Unsettled func(reply []int64) bool

	// Durable is what must be confirmed before the reply is an acknowledgement.
	Durable Durable
}

// Argv returns all of ARGV as go-redis takes it, for who runs the script by
// other ways.
func (c Call) Argv() []any {
	constants := c.constants().args
	argv := make([]any, 0, len(constants)+len(c.Args))
	for _, arg := range constants {
		argv = append(argv, arg)
	}
	for _, arg := range c.Args {
		argv = append(argv, arg)
	}
	return argv
}

// constants are those of the call, or none.
func (c *Call) constants() *Constants {
	if c.Constants == nil {
		return &noConstants
	}
	return c.Constants
}

var noConstants Constants

// check returns an error for a call that cannot be written.
func (c *Call) check() error {
	if c.Script == nil {
		return fmt.Errorf("%w: a call without a script", ErrConfig)
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
