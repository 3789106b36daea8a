package limiter_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/slotlimit/slotlimit/cluster"
	"github.com/slotlimit/slotlimit/cluster/servertest"
	"github.com/slotlimit/slotlimit/keys"
	"github.com/slotlimit/slotlimit/limiter"
)

// Without memory nothing is counted, nothing new is made, and what is there can be read.
func TestExactlyOnceOutOfMemory(t *testing.T) {
	c := servertest.Shared(t)
	const prefix = "once-out-of-memory"
	l := newOnceLedger(t, openFor(t, cluster.Config{Addrs: c.Addrs(), Timeout: 5 * time.Second}), prefix)
	node := l.homeOf(t, c, "alice")
	newcomer := usersIn(prefix, 1, func(slot int) bool {
		owner, err := c.Owner(t.Context(), slot)
		return err == nil && owner == node
	})[0]
	t.Run("full", func(t *testing.T) {
		configure(t, node, "maxmemory-policy", "noeviction")
		configure(t, node, "maxmemory", "1")
		l.wantUnavailable(t, "alice", "OOM")
		l.wantUnavailable(t, newcomer, "OOM")
		if res, err := l.lim.Peek(t.Context(), "alice"); err != nil || res.Count != 1 {
			t.Errorf("peek: count %d, %v, want 1", res.Count, err)
		}
	})
	if n := c.CheckKeys(t, prefix+":"); n != 1 {
		t.Errorf("%d counters, want 1", n)
	}
	if stored := onceCountersOf(t, c, prefix); total(stored) != 1 {
		t.Errorf("%v stored, want 1", stored)
	}
	if res, err := l.allow(t.Context(), newcomer); err != nil || res.Count != 1 {
		t.Errorf("with memory again: count %d, %v, want 1", res.Count, err)
	}
}

// Whatever single command the ACL withholds, a call counts in full or not at all, and no
// counter is left without a TTL: neither a new one, nor one that is to forget a process.
func TestExactlyOnceHalfAnACL(t *testing.T) {
	c := servertest.Shared(t)
	needed := map[string]bool{"pttl": true, "time": true, "hmget": true, "hset": true, "hgetall": true, "hdel": true, "pexpireat": true, "set": true, "evalsha": true}
	for _, command := range []string{"evalsha", "pttl", "time", "hmget", "hget", "hset", "hgetall", "hdel", "pexpireat", "set", "get", "incrby", "del"} {
		t.Run(command, func(t *testing.T) {
			user := "once-without-" + command
			for _, node := range c.Nodes() {
				if err := node.Client.Do(t.Context(), "ACL", "SETUSER", user, "reset", "on", ">secret", "~*", "+@all", "-"+command).Err(); err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { node.Client.Do(context.WithoutCancel(t.Context()), "ACL", "DELUSER", user) })
			}
			// A window of a year has been open for hours, so that fields can be old in it.
			b := newOnceBench(t, c.Addrs(), user, 366*24*time.Hour)
			free := b.client
			b.client = openFor(t, cluster.Config{Addrs: c.Addrs(), Timeout: 5 * time.Second, Username: user, Password: "secret"})
			now := time.Now().UnixMilli()
			window := now / b.period
			key := b.key(window)
			failed := 0
			attempt := func(process, number int64) {
				t.Helper()
				before, _ := free.HGet(t.Context(), key, limiter.CountField).Int64()
				_, err := b.send(t, onceCall{window: window, cost: 1, guess: now, process: process, number: number})
				after, _ := free.HGet(t.Context(), key, limiter.CountField).Int64()
				if err != nil {
					failed++
					if !errors.Is(err, cluster.ErrUnavailable) || after != before {
						t.Errorf("%v, and %d counted, want ErrUnavailable and 0", err, after-before)
					}
				} else if after != before+1 {
					t.Errorf("%d counted, want 1", after-before)
				}
				if ttl := free.PTTL(t.Context(), key).Val(); ttl == -1 {
					t.Error("the counter has no TTL")
				}
			}
			attempt(1, 1)
			left := b.end(window) - now
			free.HSet(t.Context(), key, limiter.CountField, 5, 7, fmt.Sprint("1 5 ", left+2*onceHorizon))
			free.PExpireAt(t.Context(), key, time.UnixMilli(b.end(window)+b.grace))
			attempt(2, 1)
			attempt(2, 2)
			free.PExpireAt(t.Context(), key, time.UnixMilli(b.end(window)+time.Hour.Milliseconds()))
			attempt(2, 3)
			if needed[command] != (failed > 0) {
				t.Errorf("%d of 4 calls failed", failed)
			}
			c.CheckKeys(t, user+":")
		})
	}
}

// What the documentation says of memory.
func TestExactlyOnceMemory(t *testing.T) {
	client := open(t, servertest.Shared(t).Addrs())
	var used []int64
	key := ""
	for range 10 {
		lim, err := limiter.New(client, limiter.PerDay(100), limiter.WithGrace(keys.MaxGrace), limiter.WithExactlyOnce())
		if err != nil {
			t.Fatal(err)
		}
		for range 100 {
			res := allow(t, lim, "once-12345")
			if key == "" {
				key = res.Key
			}
		}
		n, err := client.MemoryUsage(t.Context(), key).Result()
		if err != nil {
			t.Fatal(err)
		}
		used = append(used, n)
	}
	t.Logf("MEMORY USAGE of %s, with 1 to 10 processes: %d", key, used)
	if each := (used[9] - used[0]) / 9; used[0] > 150 || each > 48 {
		t.Errorf("%d bytes with one process, and %d for each further one", used[0], each)
	}
}
