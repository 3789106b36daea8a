package limiter_test

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"net"
	"slices"
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

// disturb empties the script caches, and moves a slot back and forth, until the context
// ends. It returns how often it moved, once it has ended.
func disturb(ctx context.Context, t *testing.T, c *servertest.Cluster, slot int) (moves func() int) {
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
	var working sync.WaitGroup
	moved := 0
	working.Go(func() {
		for ctx.Err() == nil {
			for _, node := range c.Nodes() {
				node.Client.ScriptFlush(ctx)
			}
			if err := c.MoveSlot(context.WithoutCancel(ctx), slot, from, to); err != nil {
				t.Error(err)
				return
			}
			from, to = to, from
			moved++
		}
	})
	return func() int {
		working.Wait()
		return moved
	}
}

// One reply in twenty is lost, each lost call is sent again without a thought, while a slot
// moves and script caches are emptied: every counter holds the calls that were made,
// to the last one, and no caller is left without an answer but by its own deadline.
func TestExactlyOnceLostReplies(t *testing.T) {
	const prefix, processes, workers, each = "exactly-once", 3, 24, 200
	c := servertest.Shared(t)
	p := proxytest.Start(t, 1)
	var ledgers []*ledger
	for range processes {
		client := openFor(t, cluster.Config{Addrs: c.Addrs(), Dialer: p.Dial, Timeout: 30 * time.Second})
		ledgers = append(ledgers, newOnceLedger(t, client, prefix))
	}
	var users []string
	for i := range 60 {
		users = append(users, fmt.Sprint("u", i))
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	moves := disturb(ctx, t, c, keys.Slot(prefix+":{u1}:"))
	p.Inject(fivePercent)
	var hurried, inTime atomic.Int64 // calls that ended with an error, and those of them before their deadline
	var wg sync.WaitGroup
	start := time.Now()
	for _, l := range ledgers {
		for w := range workers {
			wg.Go(func() {
				for i := range each {
					if i%20 != 0 {
						_, _ = l.allow(t.Context(), users[(w*7+i)%len(users)])
						continue
					}
					short, stop := context.WithTimeout(t.Context(), 2*time.Millisecond)
					if _, err := l.allow(short, "hurried-"+users[i%len(users)]); err != nil {
						hurried.Add(1)
						if short.Err() == nil && time.Until(deadlineOf(short)) > time.Millisecond {
							inTime.Add(1)
						}
					}
					stop()
				}
			})
		}
	}
	wg.Wait()
	took := time.Since(start)
	p.Inject(proxytest.Faults{})
	cancel()
	moved := moves()
	acked, ambiguous, unavailable := map[string]int64{}, map[string]int64{}, 0
	for _, l := range ledgers {
		unavailable += l.unavailable
		for _, err := range l.unclassed[:min(1, len(l.unclassed))] {
			t.Errorf("one of %d errors of no class: %v", len(l.unclassed), err)
		}
		for key, n := range l.acked {
			acked[key] += n
		}
		for key, n := range l.ambiguous {
			ambiguous[key] += n
		}
	}
	t.Logf("%d calls in %v: %d acknowledged, %d ambiguous, %d unavailable, of %d that ended by their deadline; %d moves; the proxy: %+v",
		processes*workers*each, took.Round(time.Millisecond), total(acked), total(ambiguous), unavailable, hurried.Load(), moved, p.Counts())
	if lost := p.Counts().Lost(); lost < 100 || moved < 3 {
		t.Errorf("%d replies lost, %d moves: the test tests nothing", lost, moved)
	}
	if n := inTime.Load(); n != 0 {
		t.Errorf("%d calls failed before their deadline", n)
	}
	c.CheckKeys(t, prefix+":")
	stored := onceCountersOf(t, c, prefix)
	for _, key := range slices.Sorted(maps.Keys(stored)) {
		if isHurried := strings.Contains(key, "hurried"); !isHurried && (ambiguous[key] != 0 || stored[key] != acked[key]) ||
			stored[key] < acked[key] || stored[key] > acked[key]+ambiguous[key] {
			t.Errorf("%s: %d stored, %d acknowledged, %d ambiguous", key, stored[key], acked[key], ambiguous[key])
		}
	}
	if made := int64(processes*workers*each) * 19 / 20; total(acked)+total(ambiguous)+int64(unavailable) < made {
		t.Errorf("%d outcomes of at least %d calls", total(acked)+total(ambiguous), made)
	}
}

func deadlineOf(ctx context.Context) time.Time {
	at, _ := ctx.Deadline()
	return at
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
	command := func(c onceCall) string {
		args := []string{"EVAL", b.text, "1", b.key(window)}
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
	node, err := c.Owner(t.Context(), keys.Slot(b.key(window)))
	if err != nil {
		t.Fatal(err)
	}
	late, again := dialWire(t, node.Addr), dialWire(t, node.Addr)
	if err := c.Pause(node); err != nil {
		t.Fatal(err)
	}
	first := command(call(1))
	late.write(t, first[:len(first)-1])
	again.write(t, first+command(call(2)))
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
