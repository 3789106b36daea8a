package limiter_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"github.com/slotlimit/slotlimit/cluster"
	"github.com/slotlimit/slotlimit/cluster/servertest"
	"github.com/slotlimit/slotlimit/keys"
	"github.com/slotlimit/slotlimit/limiter"
)

// go-redis prints a line for each dial that fails, and here they fail on purpose.
func init() { logging.Disable() }

// A ledger notes what callers were told, to compare it with what the nodes hold:
// for every counter, acknowledged <= stored <= acknowledged + ambiguous.
type ledger struct {
	prefix string // of the Redis keys
	lim    *limiter.Limiter

	mu          sync.Mutex
	acked       map[string]int64 // by Redis key
	ambiguous   map[string]int64
	unavailable int
	unclassed   []error // neither a decision nor one of the two errors
	slowest     time.Duration
}

// newLedger returns a ledger of a limiter with the Redis keys prefix, whose limit
// nobody reaches. The grace is long, lest midnight take counters away under the test.
func newLedger(t *testing.T, client limiter.Runner, prefix string) *ledger {
	t.Helper()
	lim, err := limiter.New(client, limiter.PerDay(limiter.MaxRate),
		limiter.WithPrefix(prefix), limiter.WithGrace(keys.MaxGrace))
	if err != nil {
		t.Fatal(err)
	}
	return &ledger{prefix: prefix, lim: lim, acked: map[string]int64{}, ambiguous: map[string]int64{}}
}

// allow makes one attempt of the user, notes the outcome, and returns it.
func (l *ledger) allow(ctx context.Context, user string) (limiter.Result, error) {
	start := time.Now()
	res, err := l.lim.Allow(ctx, user)
	took := time.Since(start)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.slowest = max(l.slowest, took)
	call, classed := errors.AsType[*cluster.CallError](err)
	switch unavailable, ambiguous := errors.Is(err, limiter.ErrUnavailable), errors.Is(err, limiter.ErrAmbiguous); {
	case err == nil:
		l.acked[res.Key]++
	case !classed || unavailable == ambiguous:
		l.unclassed = append(l.unclassed, err)
	case ambiguous:
		l.ambiguous[call.Key]++
	default:
		l.unavailable++
	}
	return res, err
}

func total(counts map[string]int64) (n int64) {
	for c := range maps.Values(counts) {
		n += c
	}
	return n
}

// A verdict is what became of the ledger's promise.
type verdict struct {
	acked, ambiguous, stored int64
	over                     []string // counters that hold more than callers can account for
	overBy                   int64
	lost                     []string // counters that hold less than was acknowledged
}

func (v verdict) String() string {
	return fmt.Sprintf("%d acknowledged, %d ambiguous, %d stored; %d counters over by %d, %d short",
		v.acked, v.ambiguous, v.stored, len(v.over), v.overBy, len(v.lost))
}

// audit reads all counters from the primaries and compares them with the ledger. It
// fails the test for unclassed errors, and for keys without a TTL or out of place.
func (l *ledger) audit(t *testing.T, c *servertest.Cluster) verdict {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, err := range l.unclassed[:min(3, len(l.unclassed))] {
		t.Errorf("one of %d errors of no class: %v", len(l.unclassed), err)
	}
	n := c.CheckKeys(t, l.prefix+":") // and waits until the cluster is whole
	stored := countersOf(t, c, l.prefix)
	if len(stored) == 0 || len(stored) != n {
		t.Errorf("%d counters read, %d checked", len(stored), n)
	}
	v := verdict{acked: total(l.acked), ambiguous: total(l.ambiguous), stored: total(stored)}
	for key := range l.acked {
		if _, ok := stored[key]; !ok {
			stored[key] = 0
		}
	}
	for _, key := range slices.Sorted(maps.Keys(stored)) {
		switch n := stored[key]; {
		case n > l.acked[key]+l.ambiguous[key]:
			v.over = append(v.over, key)
			v.overBy += n - l.acked[key] - l.ambiguous[key]
		case n < l.acked[key]:
			v.lost = append(v.lost, key)
		}
	}
	return v
}

// countersOf reads the counters with the prefix, each from the primary that holds it.
func countersOf(t *testing.T, c *servertest.Cluster, prefix string) map[string]int64 {
	t.Helper()
	return countersBy(t, c, prefix, func(node *redis.Client, key string) *redis.StringCmd { return node.Get(t.Context(), key) })
}

// countersBy reads the counters with the prefix, each as read does, from the primary that holds it.
func countersBy(t *testing.T, c *servertest.Cluster, prefix string, read func(node *redis.Client, key string) *redis.StringCmd) map[string]int64 {
	t.Helper()
	stored := map[string]int64{}
	for _, node := range c.Nodes() {
		if !isPrimary(t.Context(), node) {
			continue
		}
		names := node.Client.Scan(t.Context(), 0, prefix+":*", 1000).Iterator()
		for names.Next(t.Context()) {
			n, err := read(node.Client, names.Val()).Int64()
			if err != nil {
				t.Errorf("%s on %s: %v", names.Val(), node.Addr, err)
			}
			stored[names.Val()] = n
		}
		if err := names.Err(); err != nil {
			t.Errorf("the keys of %s: %v", node.Addr, err)
		}
	}
	return stored
}

// isPrimary asks the node itself.
func isPrimary(ctx context.Context, node *servertest.Node) bool {
	role, err := node.Client.Do(ctx, "ROLE").Slice()
	return err == nil && len(role) > 0 && role[0] == "master"
}

// wantExact fails the test unless every counter holds what was acknowledged, and
// every call was.
func (l *ledger) wantExact(t *testing.T, c *servertest.Cluster) {
	t.Helper()
	v := l.audit(t, c)
	t.Log(v)
	if l.unavailable != 0 || v.ambiguous != 0 || v.stored != v.acked || len(v.over)+len(v.lost) != 0 {
		t.Errorf("%v, %d unavailable: want every call acknowledged, and counted once", v, l.unavailable)
	}
}

// load has workers make attempts of the users in turn until the stop function is
// called, which waits for them.
func (l *ledger) load(t *testing.T, workers int, users []string, attempt func(worker int, user string)) (stop func()) {
	done := make(chan struct{})
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := w; ; i++ {
				select {
				case <-done:
					return
				default:
					attempt(w, users[i%len(users)])
				}
			}
		})
	}
	stop = sync.OnceFunc(func() {
		close(done)
		wg.Wait()
	})
	t.Cleanup(stop) // when the test ends early
	return stop
}

// usersIn returns n users whose keys are in a slot for which ok is true.
func usersIn(prefix string, n int, ok func(slot int) bool) []string {
	var users []string
	for i := 0; len(users) < n; i++ {
		if user := fmt.Sprint("u", i); ok(keys.Slot(prefix + ":{" + user + "}:")) {
			users = append(users, user)
		}
	}
	return users
}

// homes groups n users by the primary that serves them, in the order of the primaries' slots.
func homes(t *testing.T, c *servertest.Cluster, client *cluster.Client, prefix string, n int) map[*servertest.Node][]string {
	t.Helper()
	top, err := client.Topology(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	users := map[*servertest.Node][]string{}
	for _, node := range c.Nodes() {
		for _, shard := range top.Shards {
			if shard.Primary.Addr == node.Addr {
				users[node] = usersIn(prefix, n, func(slot int) bool {
					owner, ok := top.Owner(slot)
					return ok && owner.Primary == shard.Primary
				})
			}
		}
	}
	if len(users) != 3 {
		t.Fatalf("%d primaries", len(users))
	}
	return users
}

// primaries returns the nodes of homes, in the order of their addresses.
func primaries(users map[*servertest.Node][]string) []*servertest.Node {
	return slices.SortedFunc(maps.Keys(users), func(a, b *servertest.Node) int { return cmp.Compare(a.Addr, b.Addr) })
}

// await asks until ok, for at most the time given, and returns how long it took.
func await(t *testing.T, most time.Duration, what string, ok func() bool) time.Duration {
	t.Helper()
	start := time.Now()
	for !ok() {
		if time.Since(start) > most {
			t.Fatalf("%s: not within %v", what, most)
		}
		time.Sleep(2 * time.Millisecond) // a real process, which tells nobody
	}
	return time.Since(start)
}

// openFor returns a client for a test of faults, closed with the test.
func openFor(t *testing.T, cfg cluster.Config) *cluster.Client {
	t.Helper()
	client, err := cluster.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

// stat sums a counter of INFO over all nodes: stat(t, c, "commandstats", "cmdstat_asking:calls=").
func stat(t *testing.T, c *servertest.Cluster, section, name string) (sum int) {
	t.Helper()
	for _, node := range c.Nodes() {
		info, err := node.Client.Info(t.Context(), section).Result()
		if err != nil {
			t.Fatal(err)
		}
		if _, after, ok := strings.Cut(info, "\n"+name); ok {
			var n int
			if _, err := fmt.Sscanf(after, "%d", &n); err != nil {
				t.Fatal(err)
			}
			sum += n
		}
	}
	return sum
}

var _ limiter.Runner = plain{}

// plain runs scripts as go-redis does without package cluster: what a limiter is on
// whose command nothing says NoRetry.
type plain struct {
	client *redis.ClusterClient
	script *redis.Script
}

func (p plain) Home(context.Context, string) string { return "" }

func (p plain) RunAll(ctx context.Context, calls []cluster.Call) []cluster.Outcome {
	return oneByOne(ctx, p.Run, calls)
}

func (p plain) Run(ctx context.Context, call cluster.Call) ([]int64, error) {
	cmd := p.script.Run(ctx, p.client, []string{call.Key}, call.Argv()...)
	if n, err := cmd.Int64(); err == nil {
		return []int64{n}, nil
	}
	reply, err := cmd.Int64Slice()
	if err != nil {
		// Generous: whatever it is, it may have counted.
		return nil, &cluster.CallError{Key: call.Key, Kind: cluster.ErrAmbiguous, Err: err}
	}
	return reply, nil
}
