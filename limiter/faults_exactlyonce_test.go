package limiter_test

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

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
	stored := map[string]int64{}
	for _, node := range c.Nodes() {
		if !isPrimary(t.Context(), node) {
			continue
		}
		names := node.Client.Scan(t.Context(), 0, prefix+":*", 1000).Iterator()
		for names.Next(t.Context()) {
			n, err := node.Client.HGet(t.Context(), names.Val(), limiter.CountField).Int64()
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

// A wire is a connection on which a test decides when which byte leaves.
type wire struct {
	conn  net.Conn
	reply *bufio.Reader
}

func dialWire(t *testing.T, addr string) *wire {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return &wire{conn, bufio.NewReader(conn)}
}

func (w *wire) write(t *testing.T, text string) {
	t.Helper()
	if _, err := w.conn.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
}

// command is the call as it is sent.
func (b *onceBench) command(c onceCall) string {
	args := []string{"EVAL", b.text, "1", b.key(c.window)}
	for _, arg := range b.args(c) {
		args = append(args, fmt.Sprint(arg))
	}
	var text strings.Builder
	fmt.Fprintf(&text, "*%d\r\n", len(args))
	for _, arg := range args {
		fmt.Fprintf(&text, "$%d\r\n%s\r\n", len(arg), arg)
	}
	return text.String()
}

// integers reads a reply of three integers.
func (w *wire) integers(t *testing.T) (reply [3]int64) {
	t.Helper()
	if _, err := fmt.Fscanf(w.reply, "*3\r\n:%d\r\n:%d\r\n:%d\r\n", &reply[0], &reply[1], &reply[2]); err != nil {
		t.Fatal(err)
	}
	return reply
}

// A first attempt sits half-way to a primary that is paused, while it is sent again
// over another connection and the next call is made. Then it arrives, and counts nothing.
func TestExactlyOncePausedPrimary(t *testing.T) {
	c := servertest.Shared(t)
	b := newOnceBench(t, c.Addrs(), "once-paused", 24*time.Hour)
	now := time.Now().UnixMilli()
	window := now / b.period
	call := func(number int64) onceCall {
		return onceCall{window: window, cost: 1, guess: now, process: 7, number: number}
	}
	node, err := c.Owner(t.Context(), keys.Slot(b.key(window)))
	if err != nil {
		t.Fatal(err)
	}
	late, again := dialWire(t, node.Addr), dialWire(t, node.Addr)
	if err := c.Pause(node); err != nil {
		t.Fatal(err)
	}
	first := b.command(call(1))
	late.write(t, first[:len(first)-1])
	again.write(t, first+b.command(call(2)))
	if err := c.Resume(node); err != nil {
		t.Fatal(err)
	}
	for i := range int64(2) {
		if reply := again.integers(t); reply[0] != 1 || reply[1] != i+1 {
			t.Errorf("call %d: %v", i+1, reply)
		}
	}
	late.write(t, first[len(first)-1:])
	if reply := late.integers(t); reply != [3]int64{0, 0, 1} {
		t.Errorf("the late attempt: %v, want that it is older than the newest", reply)
	}
	if n := b.fields(t, window)[limiter.CountField]; n != "2" {
		t.Errorf("%s counted, want 2", n)
	}
	c.CheckKeys(t, b.prefix+":")
}

// A call that is told again what it was told is confirmed by a WAIT behind it only if the
// first sending is. WAIT promises that for what its connection wrote, so there must be
// a write, although Redis 7.0 does more than it promises.
func TestExactlyOnceConfirmed(t *testing.T) {
	c := servertest.Shared(t)
	b := newOnceBench(t, c.Addrs(), "once-confirmed", 24*time.Hour)
	now := time.Now().UnixMilli()
	call := onceCall{window: now / b.period, cost: 1, guess: now, process: 7, number: 1}
	node, err := c.Owner(t.Context(), keys.Slot(b.key(call.window)))
	if err != nil {
		t.Fatal(err)
	}
	replica, err := c.Replica(t.Context(), node)
	if err != nil {
		t.Fatal(err)
	}
	await(t, 30*time.Second, "the replica takes writes", func() bool { return node.Client.Wait(t.Context(), 1, time.Second).Val() >= 1 })
	first, again := dialWire(t, node.Addr), dialWire(t, node.Addr)
	if err := c.Pause(replica); err != nil {
		t.Fatal(err)
	}
	defer c.Resume(replica)
	for _, w := range []*wire{first, again} {
		before := changes(t, node)
		w.write(t, b.command(call)+"*3\r\n$4\r\nWAIT\r\n$1\r\n1\r\n$2\r\n50\r\n")
		reply := w.integers(t)
		var confirmed int
		if _, err := fmt.Fscanf(w.reply, ":%d\r\n", &confirmed); err != nil || reply[0] != 1 || reply[1] != 1 || confirmed != 0 {
			t.Errorf("%v, confirmed by %d, %v, want the first attempt, by 0", reply, confirmed, err)
		}
		if changes(t, node) <= before {
			t.Error("a sending wrote nothing")
		}
	}
}

// changes is how many writes the node has done.
func changes(t *testing.T, node *servertest.Node) int64 {
	t.Helper()
	info, err := node.Client.InfoMap(t.Context(), "persistence").Result()
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.ParseInt(info["Persistence"]["rdb_changes_since_last_save"], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// A primary is paused under load, and answers on before it is replaced: what callers gave up
// on was counted once or not at all, and what they waited for was counted.
func TestExactlyOncePausedUnderLoad(t *testing.T) {
	const prefix = "once-paused-load"
	c := servertest.Shared(t)
	patient := newOnceLedger(t, openFor(t, cluster.Config{Addrs: c.Addrs(), Timeout: 30 * time.Second}), prefix)
	hasty := newOnceLedger(t, openFor(t, cluster.Config{Addrs: c.Addrs(), Timeout: 50 * time.Millisecond}), prefix)
	node := patient.homeOf(t, c, "alice")
	attempt := func(l *ledger) func(int, string) {
		return func(_ int, user string) { _, _ = l.allow(t.Context(), user) }
	}
	stops := []func(){
		patient.load(t, 4, []string{"alice", "bob", "carol"}, attempt(patient)),
		hasty.load(t, 4, []string{"alice", "bob", "carol"}, attempt(hasty)),
	}
	for range 3 {
		if err := c.Pause(node); err != nil {
			t.Fatal(err)
		}
		time.Sleep(300 * time.Millisecond) // a real process; the node timeout is 2 s
		if err := c.Resume(node); err != nil {
			t.Fatal(err)
		}
		before := total(patient.snapshot())
		await(t, 30*time.Second, "calls pass again", func() bool { return total(patient.snapshot()) > before+50 })
	}
	for _, stop := range stops {
		stop()
	}
	c.CheckKeys(t, prefix+":")
	if patient.unavailable+len(patient.unclassed)+len(patient.ambiguous) != 0 {
		t.Errorf("patient callers: %d unavailable, %d ambiguous", patient.unavailable, total(patient.ambiguous))
	}
	if len(hasty.ambiguous) == 0 {
		t.Error("nobody gave up: the test tests nothing")
	}
	for key, n := range onceCountersOf(t, c, prefix) {
		acked := patient.acked[key] + hasty.acked[key]
		t.Logf("%s: %d stored, %d acknowledged, %d ambiguous", key, n, acked, hasty.ambiguous[key])
		if n < acked || n > acked+hasty.ambiguous[key] {
			t.Errorf("%s: %d stored, %d acknowledged, %d ambiguous", key, n, acked, hasty.ambiguous[key])
		}
	}
}

// snapshot returns what was acknowledged so far.
func (l *ledger) snapshot() map[string]int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.acked)
}
