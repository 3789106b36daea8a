package limiter_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/slotlimit/slotlimit/cluster"
	"github.com/slotlimit/slotlimit/cluster/servertest"
	"github.com/slotlimit/slotlimit/keys"
	"github.com/slotlimit/slotlimit/limiter"
)

// configure sets a parameter of the node until the test's end.
func configure(t *testing.T, node *servertest.Node, name, value string) {
	t.Helper()
	was := node.Client.ConfigGet(t.Context(), name).Val()[name]
	if err := node.Client.ConfigSet(t.Context(), name, value).Err(); err != nil {
		t.Fatalf("%s %s: %v", name, value, err)
	}
	t.Cleanup(func() {
		if err := node.Client.ConfigSet(context.WithoutCancel(t.Context()), name, was).Err(); err != nil {
			t.Errorf("%s back to %q: %v", name, was, err)
		}
	})
}

// wantUnavailable makes one attempt that must surely not be counted.
func (l *ledger) wantUnavailable(t *testing.T, user, cause string) {
	t.Helper()
	_, err := l.allow(t.Context(), user)
	if !errors.Is(err, limiter.ErrUnavailable) || !strings.Contains(err.Error(), cause) {
		t.Errorf("%s: %v, want ErrUnavailable because of %s", user, err, cause)
	}
}

// homeOf returns the primary that serves the user, after a first call of theirs.
func (l *ledger) homeOf(t *testing.T, c *servertest.Cluster, user string) *servertest.Node {
	t.Helper()
	res, err := l.allow(t.Context(), user)
	if err != nil {
		t.Fatal(err)
	}
	node, err := c.Owner(t.Context(), keys.Slot(res.Key))
	if err != nil {
		t.Fatal(err)
	}
	return node
}

func TestOutOfMemory(t *testing.T) {
	c := servertest.Shared(t)
	l := newLedger(t, openFor(t, cluster.Config{Addrs: c.Addrs(), Timeout: 5 * time.Second}), "out-of-memory")
	node := l.homeOf(t, c, "alice")
	newcomer := usersIn("out-of-memory", 1, func(slot int) bool {
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
	if v := l.audit(t, c); v.stored != 1 || len(v.over)+len(v.lost) != 0 {
		t.Errorf("%v, want 1 stored", v)
	}
	if res, err := l.allow(t.Context(), newcomer); err != nil || res.Count != 1 {
		t.Errorf("with memory again: count %d, %v, want 1", res.Count, err)
	}
}

// Whatever single command the ACL withholds, a call counts in full or not at all, and
// no counter is left without a TTL.
func TestHalfAnACL(t *testing.T) {
	c := servertest.Shared(t)
	as := func(t *testing.T, user string, rules ...any) *ledger {
		t.Helper()
		for _, node := range c.Nodes() {
			if err := node.Client.Do(t.Context(), append([]any{"ACL", "SETUSER", user, "reset", "on", ">secret"}, rules...)...).Err(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { node.Client.Do(context.WithoutCancel(t.Context()), "ACL", "DELUSER", user) })
		}
		cfg := cluster.Config{Addrs: c.Addrs(), Timeout: 5 * time.Second, Username: user, Password: "secret"}
		return newLedger(t, openFor(t, cfg), user)
	}
	for _, command := range []string{"evalsha", "eval", "pttl", "time", "get", "incrby", "set", "pexpireat", "expire", "del"} {
		t.Run(command, func(t *testing.T) {
			for _, node := range c.Nodes() {
				node.Client.ScriptFlush(t.Context())
			}
			l := as(t, "without-"+command, "~*", "+@all", "-"+command)
			_, first := l.allow(t.Context(), "alice")
			_, second := l.allow(t.Context(), "alice")
			key := l.keyUnder(t, c, "alice")
			// A counter whose TTL somebody took away: the third call is to mend it.
			node, err := c.Owner(t.Context(), keys.Slot(key))
			if err != nil {
				t.Fatal(err)
			}
			if err := node.Client.Persist(t.Context(), key).Err(); err != nil {
				t.Fatal(err)
			}
			_, third := l.allow(t.Context(), "alice")
			if third != nil { // then it is not mended, and CheckKeys is not to hold it against the limiter
				node.Client.Expire(t.Context(), key, time.Hour)
			}
			for _, err := range []error{first, second, third} {
				if err != nil && !errors.Is(err, limiter.ErrUnavailable) {
					t.Errorf("%v, want ErrUnavailable", err)
				}
			}
			stored := countersOf(t, c, l.prefix)
			if stored[key] != l.acked[key] {
				t.Errorf("%d stored, %d acknowledged", stored[key], l.acked[key])
			}
			c.CheckKeys(t, l.prefix+":")
		})
	}
}

// keyUnder is keyOf for a limiter that may not be able to tell: another one does.
func (l *ledger) keyUnder(t *testing.T, c *servertest.Cluster, user string) string {
	t.Helper()
	return newLedger(t, openFor(t, cluster.Config{Addrs: c.Addrs()}), l.prefix).keyOf(t, user)
}

// A value that is no counter, and without a TTL, is neither counted in nor given one.
func TestForeignValue(t *testing.T) {
	c := servertest.Shared(t)
	l := newLedger(t, openFor(t, cluster.Config{Addrs: c.Addrs(), Timeout: 5 * time.Second}), "foreign-value")
	for user, value := range map[string][]any{
		"list":     {"RPUSH", "key", "1"},
		"word":     {"SET", "key", "one"},
		"fraction": {"SET", "key", "1.5"},
	} {
		node := l.homeOf(t, c, user)
		key := l.keyOf(t, user)
		value[1] = key
		node.Client.Del(t.Context(), key)
		if err := node.Client.Do(t.Context(), value...).Err(); err != nil {
			t.Fatal(err)
		}
		before := node.Client.Dump(t.Context(), key).Val()
		for _, ttl := range []time.Duration{0, 2 * time.Hour, 300 * time.Hour} { // none, one as of a counter, too long a one
			if ttl != 0 {
				node.Client.Expire(t.Context(), key, ttl)
			}
			l.wantUnavailable(t, user, "")
			after, left := node.Client.Dump(t.Context(), key).Val(), node.Client.TTL(t.Context(), key).Val()
			if after != before || ttl == 0 && left != -1 || ttl != 0 && (left > ttl || left < ttl-time.Hour) {
				t.Errorf("%s with a TTL of %v was changed: TTL %v", user, ttl, left)
			}
		}
		node.Client.Del(t.Context(), key)
	}
}

// A node that is busy with somebody's endless script refuses, until that is killed.
func TestBusyNode(t *testing.T) {
	c := servertest.Shared(t)
	client := openFor(t, cluster.Config{Addrs: c.Addrs(), Timeout: 300 * time.Millisecond})
	l := newLedger(t, client, "busy-node")
	node := l.homeOf(t, c, "alice")
	patient := newLedger(t, openFor(t, cluster.Config{Addrs: c.Addrs(), Timeout: 30 * time.Second}), "busy-node")
	if _, err := patient.allow(t.Context(), "alice"); err != nil {
		t.Fatal(err)
	}
	key := l.keyOf(t, "alice")
	t.Run("busy", func(t *testing.T) {
		configure(t, node, "busy-reply-threshold", "50")
		endless := openFor(t, cluster.Config{Addrs: c.Addrs(), Timeout: 30 * time.Second})
		killed := make(chan error, 1)
		go func() {
			_, err := endless.Run(t.Context(), cluster.Call{Script: cluster.NewScript("while true do end"), Key: key})
			killed <- err
		}()
		await(t, 30*time.Second, "the node is busy", func() bool {
			err := node.Client.Ping(t.Context()).Err()
			return err != nil && strings.HasPrefix(err.Error(), "BUSY")
		})
		l.wantUnavailable(t, "alice", "BUSY")
		waits := make(chan error, 1)
		go func() {
			_, err := patient.allow(t.Context(), "alice")
			waits <- err
		}()
		if err := node.Client.ScriptKill(t.Context()).Err(); err != nil {
			t.Error(err)
		}
		if err := <-killed; !errors.Is(err, cluster.ErrUnavailable) || !strings.Contains(err.Error(), "kill") {
			t.Errorf("the script that was killed: %v, want ErrUnavailable", err)
		}
		if err := <-waits; err != nil {
			t.Errorf("a caller who waits it out: %v", err)
		}
	})
	c.CheckKeys(t, "busy-node:")
	if got := countersOf(t, c, "busy-node")[key]; got != l.acked[key]+patient.acked[key] || got != 3 {
		t.Errorf("%d stored, want 3", got)
	}
}

// A node that lacks a slot answers CLUSTERDOWN for all of its own, until it is whole.
func TestClusterDown(t *testing.T) {
	c := servertest.Shared(t)
	l := newLedger(t, openFor(t, cluster.Config{Addrs: c.Addrs(), Timeout: 200 * time.Millisecond}), "cluster-down")
	patient := newLedger(t, openFor(t, cluster.Config{Addrs: c.Addrs(), Timeout: 30 * time.Second}), "cluster-down")
	node := l.homeOf(t, c, "alice")
	slot := keys.Slot(l.keyOf(t, "alice"))
	if err := node.Client.ClusterDelSlots(t.Context(), slot).Err(); err != nil {
		t.Fatal(err)
	}
	back := func() error { return node.Client.ClusterAddSlots(context.WithoutCancel(t.Context()), slot).Err() }
	t.Cleanup(func() { _ = back() }) // in vain, unless the test ends early
	l.wantUnavailable(t, "alice", "CLUSTERDOWN")
	waits := make(chan error, 1)
	go func() {
		_, err := patient.allow(t.Context(), "alice")
		waits <- err
	}()
	refused := stat(t, c, "errorstats", "errorstat_CLUSTERDOWN:count=")
	await(t, 30*time.Second, "the caller meets CLUSTERDOWN", func() bool {
		return stat(t, c, "errorstats", "errorstat_CLUSTERDOWN:count=") > refused+1
	})
	if err := back(); err != nil {
		t.Fatal(err)
	}
	if err := <-waits; err != nil {
		t.Errorf("a caller who waits it out: %v", err)
	}
	if n := countersOf(t, c, "cluster-down")[l.keyOf(t, "alice")]; n != 2 {
		t.Errorf("%d stored, want 2", n)
	}
}
