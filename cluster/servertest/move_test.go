package servertest

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"
)

// moved is a slot, its owner and another primary, and keys of the slot that the owner holds.
func moved(t *testing.T, c *Cluster, prefix string) (slot int, from, to *Node, keys []string) {
	t.Helper()
	ctx := deadline(t)
	n, err := c.Nodes()[0].Client.ClusterKeySlot(ctx, prefix).Result()
	if err != nil {
		t.Fatal(err)
	}
	slot = int(n)
	if from, err = c.Owner(ctx, slot); err != nil {
		t.Fatal(err)
	}
	if to, err = c.Owner(ctx, (slot+slots/2)%slots); err != nil {
		t.Fatal(err)
	}
	for i := range 250 { // more than move in one go
		key := fmt.Sprintf("{%s}%d", prefix, i)
		if err := from.Client.Set(ctx, key, i, time.Hour).Err(); err != nil {
			t.Fatal(err)
		}
		keys = append(keys, key)
	}
	return slot, from, to, keys
}

// setAsking is how a client writes to a node that imports the key's slot.
func setAsking(ctx context.Context, n *Node, key string, ttl time.Duration) error {
	pipe := n.Client.Pipeline()
	pipe.Do(ctx, "ASKING")
	pipe.Set(ctx, key, "stray", ttl)
	_, err := pipe.Exec(ctx)
	return err
}

func TestMoveSlot(t *testing.T) {
	c := Shared(t)
	ctx := deadline(t)
	slot, from, to, keys := moved(t, c, "move")

	m, err := c.StartMove(ctx, slot, from, to)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Migrate(ctx, keys[0], "{move}absent"); err != nil {
		t.Fatal(err)
	}
	ask := fmt.Sprintf("ASK %d %s", slot, to.Addr)
	if err := from.Client.Get(ctx, keys[0]).Err(); err == nil || err.Error() != ask {
		t.Errorf("for a key that has moved: %v, want %s", err, ask)
	}
	if err := from.Client.Get(ctx, keys[1]).Err(); err != nil {
		t.Errorf("for a key that has not moved: %v", err)
	}
	if err := m.Finish(ctx); err != nil {
		t.Fatal(err)
	}
	if err := c.WaitWhole(ctx); err != nil {
		t.Fatal(err)
	}
	if got, err := c.Owner(ctx, slot); err != nil || got != to {
		t.Errorf("the owner after the move is %v, %v", got, err)
	}
	for i, key := range keys {
		if got := to.Client.Get(ctx, key).Val(); got != fmt.Sprint(i) {
			t.Errorf("%s is %q after the move", key, got)
		}
		if got := to.Client.PTTL(ctx, key).Val(); got <= 0 {
			t.Errorf("%s has TTL %v after the move", key, got)
		}
	}
	if got := c.CheckKeys(t, "{move}"); got != len(keys) {
		t.Errorf("%d keys of %d", got, len(keys))
	}
	if err := c.MoveSlot(ctx, slot, from, to); err == nil {
		t.Error("moved from a node that does not have it")
	}
	if err := c.MoveSlot(ctx, slot, to, from); err != nil {
		t.Fatal(err)
	}
	if err := c.WaitWhole(ctx); err != nil {
		t.Fatal(err)
	}
	if got, err := c.Owner(ctx, slot); err != nil || got != from {
		t.Errorf("the owner after the way back is %v, %v", got, err)
	}
}

// TestCheckKeys plants what CheckKeys must find.
func TestCheckKeys(t *testing.T) {
	t.Parallel()
	c := Start(t)
	ctx := deadline(t)
	slot, from, to, keys := moved(t, c, "c*k")
	prefix := "{c*k}"
	fill(t, c, "{cxk}", 1) // another prefix, though a pattern without care for the * takes it in
	check := func() (int, *recorder) {
		n := 0
		r := record(t, func(tb testing.TB) { n = c.CheckKeys(tb, prefix) })
		return n, r
	}
	if n, r := check(); r.failed || n != len(keys) {
		t.Fatalf("%d keys of %d, said %q", n, len(keys), r.lines)
	}

	if err := from.Client.Persist(ctx, keys[7]).Err(); err != nil {
		t.Fatal(err)
	}
	if _, r := check(); !r.failed || len(r.lines) != 1 || !r.says(keys[7], from.Addr, "no TTL") {
		t.Errorf("with a key that has no TTL, said %q", r.lines)
	}
	if err := from.Client.Expire(ctx, keys[7], time.Hour).Err(); err != nil {
		t.Fatal(err)
	}

	m, err := c.StartMove(ctx, slot, from, to)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 25 {
		if err := setAsking(ctx, to, fmt.Sprint(prefix, "stray", i), time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.Cancel(ctx); err != nil {
		t.Fatal(err)
	}
	version, err := c.Version(ctx)
	if err != nil {
		t.Fatal(err)
	}
	// Redis 8 drops keys that a node does not own by itself.
	_, r := check()
	if dropped := strings.HasPrefix(version, "redis 8"); dropped == r.failed {
		t.Errorf("%s: with keys on a node that does not own their slot, failed is %v", version, r.failed)
	} else if !dropped && (!r.says(prefix+"stray", to.Addr, from.ID) || !r.says("15 more")) {
		t.Errorf("with keys on a node that does not own their slot, said %q", r.lines)
	}

	if err := c.Kill(c.Nodes()[5]); err != nil {
		t.Fatal(err)
	}
	soon, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
	defer cancel()
	if err := c.WaitWhole(soon); err == nil {
		t.Error("whole with a replica killed")
	}
}
