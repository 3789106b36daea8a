package limiter_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/slotlimit/slotlimit/cluster"
	"github.com/slotlimit/slotlimit/cluster/proxytest"
	"github.com/slotlimit/slotlimit/cluster/servertest"
	"github.com/slotlimit/slotlimit/keys"
	"github.com/slotlimit/slotlimit/limiter"
)

// newOnceLedger is newLedger for a limiter that counts a call once, however often it is sent.
func newOnceLedger(t *testing.T, client limiter.Runner, prefix string) *ledger {
	t.Helper()
	lim, err := limiter.New(client, limiter.PerDay(limiter.MaxRate), limiter.WithExactlyOnce(),
		limiter.WithPrefix(prefix), limiter.WithGrace(keys.MaxGrace))
	if err != nil {
		t.Fatal(err)
	}
	return &ledger{prefix: prefix, lim: lim, acked: map[string]int64{}, ambiguous: map[string]int64{}}
}

// onceCountersOf is countersOf for counters that are hashes.
func onceCountersOf(t *testing.T, c *servertest.Cluster, prefix string) map[string]int64 {
	t.Helper()
	return countersBy(t, c, prefix, func(node *redis.Client, key string) *redis.StringCmd {
		return node.HGet(t.Context(), key, limiter.CountField)
	})
}

// disturb moves a slot with its keys to another primary and back, rounds times, and empties
// the script caches all the while. some lets a number of calls pass.
func disturb(t *testing.T, c *servertest.Cluster, slot, rounds int, some func()) {
	t.Helper()
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
	flush := func() {
		some()
		for _, node := range c.Nodes() {
			node.Client.ScriptFlush(t.Context())
		}
	}
	for range rounds {
		m, err := c.StartMove(t.Context(), slot, from, to)
		if err != nil {
			t.Fatal(err)
		}
		flush()
		if err := m.Finish(t.Context()); err != nil {
			t.Fatal(err)
		}
		flush()
		whole, stop := context.WithTimeout(t.Context(), 30*time.Second)
		err = c.WaitWhole(whole)
		stop()
		if err != nil {
			t.Fatal(err)
		}
		from, to = to, from
	}
}

// One reply in twenty is lost, each lost call is sent again without a thought, while a slot
// moves and script caches are emptied: every counter holds the calls that were made,
// to the last one, and nobody is left without an answer who has time.
func TestExactlyOnceLostReplies(t *testing.T) {
	const prefix, processes, workers, rounds = "exactly-once", 3, 24, 8
	c := servertest.Shared(t)
	p := proxytest.Start(t, 1)
	var users, hurried []string
	for i := range 60 {
		users = append(users, fmt.Sprint("u", i))
		hurried = append(hurried, fmt.Sprint("h", i))
	}
	var calls atomic.Int64
	var patient, hasty []*ledger
	var stops []func()
	for range processes {
		client := openFor(t, cluster.Config{Addrs: c.Addrs(), Dialer: p.Dial, Timeout: 30 * time.Second})
		patient = append(patient, newOnceLedger(t, client, prefix))
		hasty = append(hasty, newOnceLedger(t, client, prefix))
	}
	p.Inject(fivePercent)
	start := time.Now()
	for i, l := range patient {
		h := hasty[i]
		stops = append(stops, l.load(t, workers, users, func(int, string) {
			i := rand.IntN(len(users)) // in no order, lest workers follow each other
			if rand.IntN(10) > 0 {
				_, _ = l.allow(t.Context(), users[i])
				calls.Add(1)
				return
			}
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Millisecond)
			defer cancel()
			_, _ = h.allow(ctx, hurried[i])
		}))
	}
	disturb(t, c, keys.Slot(prefix+":{u1}:"), rounds, func() {
		goal := calls.Load() + 300
		await(t, 60*time.Second, "calls pass", func() bool { return calls.Load() >= goal })
	})
	for _, stop := range stops {
		stop()
	}
	p.Inject(proxytest.Faults{})
	waited, gaveUp := sum(patient), sum(hasty)
	t.Logf("%d calls in %v while a slot moved %d times: %d acknowledged; of hasty callers %d, %d ambiguous, %d unavailable; the proxy: %+v",
		calls.Load(), time.Since(start).Round(time.Millisecond), rounds, total(waited.acked), total(gaveUp.acked), total(gaveUp.ambiguous), gaveUp.unavailable, p.Counts())
	if lost := p.Counts().Lost(); lost < 80 || len(gaveUp.ambiguous) == 0 {
		t.Errorf("%d replies lost, %d hasty calls ambiguous: the test tests nothing", lost, total(gaveUp.ambiguous))
	}
	if total(waited.acked) != calls.Load() || waited.unavailable+len(waited.ambiguous)+len(waited.unclassed)+len(gaveUp.unclassed) != 0 {
		t.Errorf("%d of %d calls acknowledged; %d unavailable, %d ambiguous, %v %v", total(waited.acked), calls.Load(),
			waited.unavailable, total(waited.ambiguous), waited.unclassed, gaveUp.unclassed)
	}
	c.CheckKeys(t, prefix+":")
	stored := onceCountersOf(t, c, prefix)
	for _, key := range slices.Sorted(maps.Keys(stored)) {
		n, acked := stored[key], waited.acked[key]+gaveUp.acked[key]
		if n < acked || n > acked+gaveUp.ambiguous[key] {
			t.Errorf("%s: %d stored, %d acknowledged, %d ambiguous", key, n, acked, gaveUp.ambiguous[key])
		}
	}
}

// sum adds ledgers up.
func sum(ledgers []*ledger) *ledger {
	all := &ledger{acked: map[string]int64{}, ambiguous: map[string]int64{}}
	for _, l := range ledgers {
		for key, n := range l.acked {
			all.acked[key] += n
		}
		for key, n := range l.ambiguous {
			all.ambiguous[key] += n
		}
		all.unavailable += l.unavailable
		all.unclassed = append(all.unclassed, l.unclassed...)
	}
	return all
}

// The same with a script that counts each sending: it counts some calls twice. So the test
// above can fail.
func TestRepeatedWithoutNumbers(t *testing.T) {
	const prefix = "repeated"
	c := servertest.Shared(t)
	p := proxytest.Start(t, 1)
	client := openFor(t, cluster.Config{Addrs: c.Addrs(), Dialer: p.Dial, Timeout: 30 * time.Second})
	l := newLedger(t, repeating{client}, prefix)
	p.Inject(fivePercent)
	var wg sync.WaitGroup
	for w := range 24 {
		wg.Go(func() {
			for i := range 100 {
				_, _ = l.allow(t.Context(), fmt.Sprint("u", (w+i)%60))
			}
		})
	}
	wg.Wait()
	p.Inject(proxytest.Faults{})
	if v := l.audit(t, c); len(v.over) == 0 {
		t.Errorf("%v: nothing was counted twice: then the test of exactly-once mode proves nothing", v)
	}
}

// repeating has calls sent again that must not be.
type repeating struct{ *cluster.Client }

func (r repeating) Run(ctx context.Context, call cluster.Call) ([]int64, error) {
	call.Repeatable = true
	return r.Client.Run(ctx, call)
}
