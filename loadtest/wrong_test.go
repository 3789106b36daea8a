package main

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/slotlimit/slotlimit/cluster/clustertest"
	"github.com/slotlimit/slotlimit/keys"
	"github.com/slotlimit/slotlimit/limiter"
)

// A naive limiter counts with plain commands. As made by newNaive it is right, as long as
// no reply is lost; each test replaces a part by one that is wrong.
type naive struct {
	setup
	client redis.UniversalClient

	// key names the counter of a window.
	key func(user string, window int64) string

	// count counts an attempt, and returns what it decides by.
	count func(ctx context.Context, key string) (int64, error)

	// expire sets the counter's expiry after the attempt that brought it to count.
	expire func(ctx context.Context, key string, count int64, end time.Time) error
}

func newNaive(s setup) *naive {
	n := &naive{setup: s, client: s.target.calls.UniversalClient}
	n.key = func(user string, window int64) string { return fmt.Sprintf("%s:{%s}:%d", s.prefix, user, window) }
	n.count = func(ctx context.Context, key string) (int64, error) { return n.client.Incr(ctx, key).Result() }
	n.expire = func(ctx context.Context, key string, count int64, end time.Time) error {
		if count > 1 {
			return nil
		}
		return n.client.PExpireAt(ctx, key, end.Add(s.grace)).Err()
	}
	return n
}

func (n *naive) AllowN(ctx context.Context, user string, _ int64) (limiter.Result, error) {
	window := keys.WindowNumber(n.target.inner.Now(0).UnixMilli(), n.limit.Period)
	key := n.key(user, window)
	count, err := n.count(ctx, key)
	if err == nil {
		err = n.expire(ctx, key, count, time.UnixMilli((window+1)*n.limit.Period.Milliseconds()))
	}
	return limiter.Result{Allowed: count <= n.limit.Rate, Limit: n.limit, Key: key, Window: window}, err
}

// getThen makes it read the count first and write it after eight have read: with its own count
// as the only one that it knows of.
func (n *naive) getThen(write func(ctx context.Context, key string, count int64) error) {
	meet := meeting(8)
	n.count = func(ctx context.Context, key string) (int64, error) {
		before, err := n.client.Get(ctx, key).Int64()
		if err != nil && err != redis.Nil {
			return 0, err
		}
		meet()
		return before + 1, write(ctx, key, before+1)
	}
	n.expire = always(n)
}

// meeting lets callers wait until so many of them have met, and lets later ones pass.
func meeting(callers int) func() {
	var mu sync.Mutex
	all := make(chan struct{})
	return func() {
		mu.Lock()
		if callers--; callers == 0 {
			close(all)
		}
		mu.Unlock()
		<-all
	}
}

// wrongs are limiters with the mistakes that people make, and what must be said of them.
var wrongs = []struct {
	name  string
	args  []string
	spoil func(*naive)
	want  string // a line, as a regular expression; empty if all checks hold
}{
	{
		name:  "nothing wrong",
		args:  []string{"-users", "20", "-requests", "500", "-workers", "8", "-limit", "10/366d"},
		spoil: func(*naive) {},
	},
	{
		// Between the GET and the INCR others pass, on the strength of the same count.
		name: "GET then INCR",
		args: []string{"-users", "1", "-requests", "8", "-workers", "8", "-limit", "3/366d"},
		spoil: func(n *naive) {
			n.getThen(func(ctx context.Context, key string, _ int64) error {
				return n.client.Incr(ctx, key).Err()
			})
		},
		want: `limit: user "u-[0-9a-f]{8}" window \d+: allowed 8, should be 3 \(rate 3, told 8\)`,
	},
	{
		// The same with SET: all write the same number, and updates are lost.
		name: "GET then SET",
		args: []string{"-users", "1", "-requests", "8", "-workers", "8", "-limit", "3/366d"},
		spoil: func(n *naive) {
			n.getThen(func(ctx context.Context, key string, count int64) error {
				return n.client.Set(ctx, key, count, 0).Err()
			})
		},
		want: `counters: user "u-[0-9a-f]{8}" window \d+: stored 1, told 8`,
	},
	{
		// Five replies are lost, the increments behind them are not.
		name: "retry on timeout",
		args: []string{"-users", "1", "-requests", "50", "-workers", "1", "-limit", "30/366d"},
		spoil: func(n *naive) {
			n.target.inner.LoseReplies(clustertest.On(clustertest.AllNodes, "INCR"), 5, clustertest.Cut)
			n.count = func(ctx context.Context, key string) (count int64, err error) {
				for range 10 {
					if count, err = n.client.Incr(ctx, key).Result(); err == nil {
						break
					}
				}
				return count, err
			}
		},
		want: `counters: user "u-[0-9a-f]{8}" window \d+: stored 55, told 50`,
	},
	{
		// Two windows of a user are in two slots, on two nodes with two clocks.
		name: "no hash tag",
		args: []string{"-users", "1", "-requests", "20", "-workers", "1", "-limit", "5/1m"},
		spoil: func(n *naive) {
			calls := 0
			n.key = func(user string, window int64) string {
				if calls++; calls == 10 {
					n.target.inner.Advance(time.Minute)
				}
				return n.prefix + ":" + user + ":" + strconv.FormatInt(window, 10)
			}
		},
		want: `placement: user "(u-[0-9a-f]{8})" window (\d+): key "wrong:u-[0-9a-f]{8}:\d+" is in slot \d+, but the user's slot is \d+\n` +
			`  placement: user "u-[0-9a-f]{8}" window (\d+): key "wrong:u-[0-9a-f]{8}:\d+" is in slot \d+, but the user's slot is \d+`,
	},
	{
		// Steady traffic keeps the counter alive.
		name: "EXPIRE on every request",
		args: []string{"-users", "1", "-requests", "20", "-workers", "1", "-limit", "5/24h"},
		spoil: func(n *naive) {
			n.expire = func(ctx context.Context, key string, _ int64, _ time.Time) error {
				return n.client.PExpire(ctx, key, n.limit.Period+n.grace).Err()
			}
		},
		want: `expiry: user "u-[0-9a-f]{8}" window \d+: TTL 24h\d+m[0-9.]+s, should be at most [0-9hm.]+s: expires [0-9hm.]+s after the window's end`,
	},
}

// always sets the right expiry on every request: for counters that are not made by INCR.
func always(n *naive) func(context.Context, string, int64, time.Time) error {
	return func(ctx context.Context, key string, _ int64, end time.Time) error {
		return n.client.PExpireAt(ctx, key, end.Add(n.grace)).Err()
	}
}

func TestWrongLimitersAreCaught(t *testing.T) {
	for _, test := range wrongs {
		t.Run(test.name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			p := newProgram(&stdout, &stderr)
			p.limiter = func(s setup) (underTest, error) {
				n := newNaive(s)
				test.spoil(n)
				return n, nil
			}
			status := p.run(t.Context(), append(test.args, "-prefix", "wrong"))
			want := exitFailed
			if test.want == "" {
				want = exitOK
			}
			if status != want || stderr.Len() > 0 {
				t.Errorf("exit status %d, want %d; stderr: %s", status, want, &stderr)
			}
			if !regexp.MustCompile(test.want).Match(stdout.Bytes()) {
				t.Errorf("no line like\n%s\nin\n%s", test.want, &stdout)
			}
		})
	}
}
