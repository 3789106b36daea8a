package limiter_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slotlimit/slotlimit/cluster"
	"github.com/slotlimit/slotlimit/cluster/servertest"
	"github.com/slotlimit/slotlimit/keys"
)

// A slot goes from primary to primary and back while callers count in it: keys that
// have moved, that have not, and that do not exist yet. Nobody notices.
func TestMigratingSlot(t *testing.T) {
	const prefix, rounds = "migrating-slot", 6
	c := servertest.Shared(t)
	client := openFor(t, cluster.Config{Addrs: c.Addrs(), Timeout: 10 * time.Second})
	l := newLedger(t, client, prefix)
	slot := keys.Slot(prefix + ":{u1}:")
	all := usersIn(prefix, 3+2*rounds, func(s int) bool { return s == slot })
	users, later := all[:3], all[3:]

	from, err := c.Owner(t.Context(), slot)
	if err != nil {
		t.Fatal(err)
	}
	var to *servertest.Node
	for _, node := range c.Nodes() {
		if node != from && isPrimary(t.Context(), node) {
			to = node
		}
	}
	asked, moved := stat(t, c, "commandstats", "cmdstat_asking:calls="), stat(t, c, "errorstats", "errorstat_MOVED:count=")

	var calls atomic.Int64
	var mu sync.Mutex
	var failed error
	attempt := func(_ int, user string) {
		if _, err := l.allow(t.Context(), user); err != nil {
			mu.Lock()
			defer mu.Unlock()
			failed = err
		}
		calls.Add(1)
	}
	stop := l.load(t, 8, append(users, "elsewhere-1", "elsewhere-2"), attempt)
	// some lets a number of calls pass in the present state of the slot.
	some := func() {
		t.Helper()
		goal := calls.Load() + 100
		await(t, 30*time.Second, "calls pass", func() bool { return calls.Load() >= goal })
	}
	for range rounds {
		m, err := c.StartMove(t.Context(), slot, from, to)
		if err != nil {
			t.Fatal(err)
		}
		some()
		attempt(0, later[0]) // new: neither has it, and the giver must not make it
		later = later[1:]
		if err := m.Migrate(t.Context(), l.keyOf(t, users[0]), l.keyOf(t, users[1])); err != nil {
			t.Fatal(err)
		}
		some()
		if err := m.Finish(t.Context()); err != nil {
			t.Fatal(err)
		}
		attempt(0, later[0])
		later = later[1:]
		some()
		from, to = to, from
	}
	stop()
	mu.Lock()
	defer mu.Unlock()
	if failed != nil {
		t.Errorf("a caller saw %v", failed)
	}
	asked = stat(t, c, "commandstats", "cmdstat_asking:calls=") - asked
	moved = stat(t, c, "errorstats", "errorstat_MOVED:count=") - moved
	t.Logf("%d calls while a slot moved %d times; %d sent on by ASK, %d by MOVED", calls.Load(), rounds, asked, moved)
	if asked == 0 || moved == 0 {
		t.Errorf("%d ASK, %d MOVED: the test tests nothing", asked, moved)
	}
	l.wantExact(t, c)
}

// keyOf returns the key of the user's present counter.
func (l *ledger) keyOf(t *testing.T, user string) string {
	t.Helper()
	res, err := l.lim.Peek(t.Context(), user)
	if err != nil {
		t.Fatal(err)
	}
	return res.Key
}

// Script caches are emptied all the time: only the calls that met NOSCRIPT are sent
// again, as text.
func TestFlushedScripts(t *testing.T) {
	c := servertest.Shared(t)
	client := openFor(t, cluster.Config{Addrs: c.Addrs(), Timeout: 10 * time.Second})
	l := newLedger(t, client, "flushed-scripts")
	before := stat(t, c, "errorstats", "errorstat_NOSCRIPT:count=")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var flushing sync.WaitGroup
	flushes := 0
	flushing.Go(func() {
		for ctx.Err() == nil {
			for _, node := range c.Nodes() {
				if err := node.Client.ScriptFlush(ctx).Err(); err != nil && ctx.Err() == nil {
					t.Error(err)
				}
			}
			flushes++
		}
	})
	var callers sync.WaitGroup
	for w := range 16 {
		callers.Go(func() {
			for i := range 300 {
				if _, err := l.allow(t.Context(), fmt.Sprint("u", (w+i)%40)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	callers.Wait()
	cancel()
	flushing.Wait()
	missed := stat(t, c, "errorstats", "errorstat_NOSCRIPT:count=") - before
	t.Logf("%d flushes of all caches; %d calls met NOSCRIPT", flushes, missed)
	if missed < 100 {
		t.Errorf("%d calls met NOSCRIPT: the test tests nothing", missed)
	}
	l.wantExact(t, c)
}
