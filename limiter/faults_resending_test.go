package limiter_test

import (
	"bufio"
	"fmt"
	"maps"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/slotlimit/slotlimit/cluster"
	"github.com/slotlimit/slotlimit/cluster/servertest"
	"github.com/slotlimit/slotlimit/keys"
	"github.com/slotlimit/slotlimit/limiter"
)

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
