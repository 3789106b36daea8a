package limiter_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/slotlimit/slotlimit/cluster"
	"github.com/slotlimit/slotlimit/cluster/servertest"
	"github.com/slotlimit/slotlimit/keys"
	"github.com/slotlimit/slotlimit/limiter"
)

// long says that tests may take minutes, to show what chance shows.
var long = os.Getenv("SLOTLIMIT_LONG") == "1"

// newDurableLedger is newLedger with options.
func newDurableLedger(t *testing.T, client limiter.Runner, prefix string, opts ...limiter.Option) *ledger {
	t.Helper()
	l := newLedger(t, client, prefix)
	var err error
	l.lim, err = limiter.New(client, limiter.PerDay(limiter.MaxRate),
		append([]limiter.Option{limiter.WithPrefix(prefix), limiter.WithGrace(keys.MaxGrace)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// counts returns how many attempts were acknowledged so far.
func (l *ledger) counts() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return total(l.acked)
}

// difference compares the ledger with the counters: how many acknowledged attempts these
// lack, and how many they hold that nobody can account for.
func (l *ledger) difference(t *testing.T, c *servertest.Cluster) (lost, over int64) {
	t.Helper()
	if err := c.WaitWhole(t.Context()); err != nil {
		t.Fatal(err)
	}
	stored := countersOf(t, c, l.prefix)
	l.mu.Lock()
	defer l.mu.Unlock()
	for key, n := range l.acked {
		lost += max(0, n-stored[key])
	}
	for key, n := range stored {
		over += max(0, n-l.acked[key]-l.ambiguous[key])
	}
	return lost, over
}

// A lossTest loses primaries under load, one after the other, and counts what was lost.
type lossTest struct {
	c      *servertest.Cluster
	name   string
	rounds int
	opts   []limiter.Option

	// lose loses a primary whose replica is given, and returns when another one, or the same
	// again, serves its slots. repair makes the cluster whole again.
	lose   func(ctx context.Context, round int, primary, replica *servertest.Node) error
	repair func(ctx context.Context, round int, primary *servertest.Node) error
}

// run returns how many attempts were acknowledged and how many of these were lost. Whatever
// the durability, nothing is counted twice.
func (lt lossTest) run(t *testing.T) (acked, lost int64) {
	t.Helper()
	ambiguous := int64(0)
	for round := range lt.rounds {
		l := lt.round(t, round)
		short, over := l.difference(t, lt.c)
		if over > 0 || len(l.unclassed) > 0 {
			t.Errorf("round %d: %d counted that nobody asked for, errors without a class: %v", round, over, l.unclassed)
		}
		acked += total(l.acked)
		ambiguous += total(l.ambiguous)
		lost += short
	}
	t.Logf("%s: %d primaries lost: %d attempts acknowledged, %d ambiguous, %d of the acknowledged lost",
		lt.name, lt.rounds, acked, ambiguous, lost)
	return acked, lost
}

func (lt lossTest) round(t *testing.T, round int) *ledger {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := lt.c.WaitWhole(ctx); err != nil {
		t.Fatal(err)
	}
	client := openFor(t, cluster.Config{Addrs: lt.c.Addrs(), Timeout: 500 * time.Millisecond})
	defer client.Close()
	l := newDurableLedger(t, client, fmt.Sprintf("%s-%d", lt.name, round), lt.opts...)
	slot := round % 3 * keys.Slots / 3
	primary, err := lt.c.Owner(ctx, slot)
	if err != nil {
		t.Fatal(err)
	}
	replica, err := lt.c.Replica(ctx, primary)
	if err != nil {
		t.Fatal(err)
	}
	users := homes(t, lt.c, client, l.prefix, 16)[primary]
	stop := l.load(t, 16, users, func(_ int, user string) { _, _ = l.allow(ctx, user) })
	defer stop()
	// Enough that there is something to lose, and connections are warm.
	await(t, 30*time.Second, "1000 acknowledged attempts", func() bool { return l.counts() >= 1000 })
	if err := lt.lose(ctx, round, primary, replica); err != nil {
		t.Fatal(err)
	}
	stop()
	if err := lt.repair(ctx, round, primary); err != nil {
		t.Fatal(err)
	}
	return l
}

// killAndPause kills a primary in one round and pauses one in the next; either way its
// replica is promoted, and then it comes back.
func killAndPause(t *testing.T, c *servertest.Cluster, name string, rounds int, opts ...limiter.Option) lossTest {
	return lossTest{
		c: c, name: name, rounds: rounds, opts: opts,
		lose: func(ctx context.Context, round int, primary, replica *servertest.Node) error {
			fault := c.Kill
			if round%2 == 1 {
				fault = c.Pause
			}
			if err := fault(primary); err != nil {
				return err
			}
			await(t, 30*time.Second, "promotion", func() bool { return isPrimary(ctx, replica) })
			return nil
		},
		repair: func(ctx context.Context, round int, primary *servertest.Node) error {
			if round%2 == 1 {
				return c.Resume(primary)
			}
			return c.Restart(ctx, primary)
		},
	}
}

// No acknowledged count is lost with a primary, if a replica had to confirm it.
func TestDurableFailovers(t *testing.T) {
	c := breakable(t)
	rounds := 20
	if testing.Short() {
		rounds = 3
	}
	if acked, lost := killAndPause(t, c, "durable", rounds, limiter.WithDurable(1)).run(t); lost != 0 {
		t.Errorf("%d of %d acknowledged attempts lost", lost, acked)
	}
	if long { // chance decides how many these are
		killAndPause(t, c, "plain", rounds).run(t)
	}
}

// restarts kills primaries that are back before anybody is promoted.
func restarts(c *servertest.Cluster, name string, rounds int, opts ...limiter.Option) lossTest {
	return lossTest{
		c: c, name: name, rounds: rounds, opts: opts,
		lose: func(ctx context.Context, _ int, primary, _ *servertest.Node) error {
			return c.Restart(ctx, primary)
		},
		repair: func(context.Context, int, *servertest.Node) error { return nil },
	}
}

// patient keeps replicas from being promoted while a primary restarts.
var patient = servertest.WithNodeTimeout(15 * time.Second)

// A primary without a file comes back empty, and the replica that had confirmed copies that.
func TestDurableRestartsWithoutFile(t *testing.T) {
	c := servertest.Start(t, patient)
	if acked, lost := restarts(c, "restart-wait", 1, limiter.WithDurable(1)).run(t); lost == 0 {
		t.Errorf("none of %d acknowledged attempts lost: has WAIT become enough?", acked)
	}
}

// With a file that is waited for, nothing is lost.
func TestDurableRestarts(t *testing.T) {
	c := servertest.Start(t, patient, servertest.WithAppendOnly(), servertest.WithArgs("--appendfsync", "always"))
	version, err := c.Version(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if strings.HasPrefix(version, "redis 7.0.") {
		// These do not know WAITAOF; there is nothing to promise.
		l := newDurableLedger(t, open(t, c.Addrs()), "restart-refused", limiter.WithDurableAOF())
		if _, err := l.lim.Allow(t.Context(), "alice"); !errors.Is(err, limiter.ErrCannotConfirm) || !strings.Contains(err.Error(), "7.2") {
			t.Errorf("%s: %v, want ErrCannotConfirm and the version that is needed", version, err)
		}
		return
	}
	for name, opts := range map[string][]limiter.Option{
		"restart-aof":         {limiter.WithDurableAOF()},
		"restart-aof-replica": {limiter.WithDurableAOF(), limiter.WithDurable(1)},
	} {
		if acked, lost := restarts(c, name, 3, opts...).run(t); lost != 0 {
			t.Errorf("%d of %d acknowledged attempts lost", lost, acked)
		}
	}
}

// What a confirmation costs, of one caller who waits for each.
func BenchmarkDurable(b *testing.B) {
	c := servertest.Shared(b)
	b.Run("plain", func(b *testing.B) { benchmarkDurable(b, c) })
	b.Run("replica", func(b *testing.B) { benchmarkDurable(b, c, limiter.WithDurable(1)) })
	version, err := c.Version(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	if !strings.HasPrefix(version, "redis 7.0.") {
		c := servertest.Start(b, servertest.WithAppendOnly(), servertest.WithArgs("--appendfsync", "always"))
		b.Run("file", func(b *testing.B) { benchmarkDurable(b, c, limiter.WithDurableAOF()) })
		b.Run("file+replica", func(b *testing.B) { benchmarkDurable(b, c, limiter.WithDurableAOF(), limiter.WithDurable(1)) })
	}
}

func benchmarkDurable(b *testing.B, c *servertest.Cluster, opts ...limiter.Option) {
	lim, err := limiter.New(open(b, c.Addrs()), limiter.PerDay(limiter.MaxRate), append(opts, limiter.WithPrefix(b.Name()))...)
	if err != nil {
		b.Fatal(err)
	}
	first, err := lim.Allow(b.Context(), "alice")
	for tries := 0; errors.Is(err, limiter.ErrUnconfirmed) && tries < 30; tries++ {
		first, err = lim.Allow(b.Context(), "alice") // a replica still writes its first file
	}
	if err != nil {
		b.Fatal(err)
	}
	n, last := int64(0), first
	b.ReportAllocs()
	for b.Loop() {
		if last, err = lim.Allow(b.Context(), "alice"); err != nil {
			b.Fatal(err)
		}
		n++
	}
	if last.Count-first.Count != n && last.Window == first.Window {
		b.Fatalf("%d attempts moved the count from %d to %d", n, first.Count, last.Count)
	}
}
