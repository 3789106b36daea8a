package limiter_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/slotlimit/slotlimit/cluster"
	"github.com/slotlimit/slotlimit/cluster/servertest"
)

// An operator's planned failover, and pauses of all clients, lose no call and no count.
func TestGracefulFailover(t *testing.T) {
	c := servertest.Shared(t)
	client := openFor(t, cluster.Config{Addrs: c.Addrs(), Timeout: 30 * time.Second})
	l := newLedger(t, client, "graceful-failover")
	var users []string
	for i := range 30 {
		users = append(users, fmt.Sprint("u", i))
	}
	stop := l.load(t, 8, users, func(_ int, user string) {
		if _, err := l.allow(t.Context(), user); err != nil {
			t.Error(err)
		}
	})
	for range 2 { // there and back
		primary, err := c.Owner(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		replica, err := c.Replica(t.Context(), primary)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Failover(t.Context(), replica); err != nil {
			t.Fatal(err)
		}
		for _, node := range c.Nodes() {
			if err := node.Client.Do(t.Context(), "CLIENT", "PAUSE", 100).Err(); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.WaitWhole(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	stop()
	l.wantExact(t, c)
}

// All connections of all clients are cut, again and again: within bounds, and the
// calls whose replies were under way say so.
func TestCutConnections(t *testing.T) {
	c := servertest.Shared(t)
	client := openFor(t, cluster.Config{Addrs: c.Addrs(), Timeout: 5 * time.Second})
	l := newLedger(t, client, "cut-connections")
	var users []string
	for i := range 30 {
		users = append(users, fmt.Sprint("u", i))
	}
	stop := l.load(t, 16, users, func(_ int, user string) { _, _ = l.allow(t.Context(), user) })
	ambiguous := func() int64 {
		l.mu.Lock()
		defer l.mu.Unlock()
		return total(l.ambiguous)
	}
	for round := 0; round < 20 || round < 1000 && ambiguous() == 0; round++ {
		for _, node := range c.Nodes() {
			// The own connection stays.
			if err := node.Client.Do(t.Context(), "CLIENT", "KILL", "TYPE", "normal").Err(); err != nil && !errors.Is(err, redis.Nil) {
				t.Error(err)
			}
		}
	}
	stop()
	v := l.audit(t, c)
	t.Logf("%v; %d unavailable", v, l.unavailable)
	if len(v.over)+len(v.lost) != 0 || l.unavailable != 0 || v.ambiguous == 0 {
		t.Errorf("%v, %d unavailable", v, l.unavailable)
	}
}
