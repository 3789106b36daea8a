package clustertest_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/slotlimit/slotlimit/cluster/clustertest"
	"github.com/slotlimit/slotlimit/keys"
)

// count is a small limiter: INCR, and an expiry for a new key.
var count = redis.NewScript(`
local n = redis.call('INCR', KEYS[1])
if n == 1 then redis.call('PEXPIRE', KEYS[1], 60000) end
return n`)

// client is go-redis with its own defaults: what a user who knows nothing of this
// package would bring.
func client(tb testing.TB, c *clustertest.Cluster) *redis.ClusterClient {
	tb.Helper()
	cl := redis.NewClusterClient(&redis.ClusterOptions{Addrs: c.Addrs()})
	tb.Cleanup(func() { cl.Close() })
	return cl
}

func TestDefaultClient(t *testing.T) {
	c := clustertest.Start(t)
	cl := client(t, c)
	ctx := t.Context()
	const users = 300
	for i := range users {
		key := fmt.Sprintf("rl:{user%d}:1", i)
		if n, err := count.Run(ctx, cl, []string{key}).Int(); err != nil || n != 1 {
			t.Fatalf("%s: %d, %v", key, n, err)
		}
	}
	if n, err := cl.DBSize(ctx).Result(); err != nil || n != users {
		t.Errorf("DBSIZE over all primaries: %d, %v, want %d", n, err, users)
	}
	names, err := cl.MGet(ctx, "{user1}", "rl:{user1}:1").Result()
	if err != nil || names[0] != nil || names[1] != "1" {
		t.Errorf("MGET: %v, %v", names, err)
	}
	total := 0
	for i := range clustertest.Shards {
		held := len(c.Dump(i))
		if held < users/5 {
			t.Errorf("node %d holds %d of %d keys, which is no third", i, held, users)
		}
		total += held
	}
	if total != users {
		t.Errorf("the primaries hold %d keys, want %d", total, users)
	}
	if err := c.Check(); err != nil {
		t.Error(err)
	}
}

func TestTopologyAsGoRedisReadsIt(t *testing.T) {
	c := clustertest.Start(t)
	cl := client(t, c)
	ctx := t.Context()
	shards, err := cl.ClusterShards(ctx).Result()
	if err != nil || len(shards) != clustertest.Shards {
		t.Fatalf("%v, %v", shards, err)
	}
	for i, s := range shards {
		want := c.Slots(i)
		if len(s.Slots) != 1 || int(s.Slots[0].Start) != want[0].First || int(s.Slots[0].End) != want[0].Last {
			t.Errorf("shard %d: slots %v, want %v", i, s.Slots, want)
		}
		for j, role := range []string{"master", "replica"} {
			n := s.Nodes[j]
			if addr := fmt.Sprintf("%s:%d", n.Endpoint, n.Port); n.Role != role || n.Health != "online" || addr != c.Addr(i+j*clustertest.Shards) {
				t.Errorf("shard %d: %+v", i, n)
			}
		}
	}
	infos, err := cl.Command(ctx).Result()
	if err != nil || infos["evalsha"] == nil || infos["get"].FirstKeyPos != 1 || !infos["get"].ReadOnly {
		t.Errorf("COMMAND: %v, %v", infos["get"], err)
	}
	links, err := cl.ClusterLinks(ctx).Result()
	if err == nil {
		t.Errorf("CLUSTER LINKS, which is not served: %v", links)
	}
}

// TestScriptPerNode is why a client needs EVAL after NOSCRIPT even for scripts that
// it has loaded everywhere.
func TestScriptPerNode(t *testing.T) {
	c := clustertest.Start(t)
	cl := client(t, c)
	ctx := t.Context()
	if err := cl.ForEachShard(ctx, func(ctx context.Context, n *redis.Client) error { return count.Load(ctx, n).Err() }); err != nil {
		t.Fatal(err)
	}
	if err := count.EvalSha(ctx, cl, []string{"b"}).Err(); err != nil {
		t.Fatal(err)
	}
	c.FlushScripts(0)
	if err := count.EvalSha(ctx, cl, []string{"b"}).Err(); !redis.HasErrorPrefix(err, "NOSCRIPT") {
		t.Errorf("after the flush: %v", err)
	}
	if err := count.EvalSha(ctx, cl, []string{"a"}).Err(); err != nil {
		t.Errorf("another node's cache went too: %v", err)
	}
}

func TestResp3AndTxPipeline(t *testing.T) {
	c := clustertest.Start(t)
	for _, protocol := range []int{2, 3} {
		cl := redis.NewClusterClient(&redis.ClusterOptions{Addrs: c.Addrs(), Protocol: protocol})
		ctx := t.Context()
		key := fmt.Sprintf("{h}%d", protocol)
		cmds, err := cl.TxPipelined(ctx, func(p redis.Pipeliner) error {
			p.HSet(ctx, key, "f", "1", "g", "2")
			p.Expire(ctx, key, time.Minute)
			p.HGetAll(ctx, key)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		got := cmds[2].(*redis.MapStringStringCmd).Val()
		if got["f"] != "1" || got["g"] != "2" || len(got) != 2 {
			t.Errorf("RESP%d: %v", protocol, got)
		}
		cl.Close()
	}
	if err := c.Check(); err != nil {
		t.Error(err)
	}
	slot := keys.Slot("{h}")
	owner := c.Owner(slot)
	for _, e := range c.Dump(owner) {
		if e.Slot != slot || e.Type != "hash" || e.Fields["g"] != "2" || e.TTL <= 0 || e.TTL > time.Minute {
			t.Errorf("%+v", e)
		}
	}
	if n := len(c.Keys(owner)); n != 2 {
		t.Errorf("%d keys, want 2", n)
	}
}

// TestLargeArguments runs what does not fit one read of the connection's buffer.
func TestLargeArguments(t *testing.T) {
	c := clustertest.Start(t)
	cl := client(t, c)
	ctx := t.Context()
	big := strings.Repeat("x\r\n", 100_000)
	if err := cl.Set(ctx, "a", big, time.Minute).Err(); err != nil {
		t.Fatal(err)
	}
	if got, err := cl.Get(ctx, "a").Result(); err != nil || got != big {
		t.Errorf("%d bytes of %d came back, %v", len(got), len(big), err)
	}
}

// TestBrokenProtocol sends what is no command: the node says so and hangs up.
func TestBrokenProtocol(t *testing.T) {
	c := clustertest.Start(t)
	for _, text := range []string{"*x\r\n", "*1\r\n+PING\r\n", "*1\r\n$-1\r\n", "*2000000\r\n", strings.Repeat("x", 5000)} {
		w := dial(t, c.Addr(0))
		fmt.Fprint(w.nc, text)
		got, err := w.tryRead()
		if err != nil || !strings.HasPrefix(got, "-ERR Protocol error: ") {
			t.Errorf("%.20q: %s, %v", text, got, err)
		}
		if _, err := w.tryRead(); err == nil {
			t.Errorf("%.20q: the connection stays open", text)
		}
	}
	w := dial(t, c.Addr(0))
	fmt.Fprint(w.nc, "\r\nPING\r\n")
	if got := w.read(); got != "+PONG" {
		t.Errorf("inline PING: %s", got)
	}
}
