package clustertest_test

import (
	"errors"
	"fmt"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slotlimit/slotlimit/cluster/clustertest"
)

// until waits for a condition that another goroutine is about to make true.
func until(tb testing.TB, condition func() bool) {
	tb.Helper()
	for deadline := time.Now().Add(patience); !condition(); runtime.Gosched() {
		if time.Now().After(deadline) {
			tb.Fatal("it did not come true")
		}
	}
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

func TestFailover(t *testing.T) {
	c := clustertest.Start(t, frozen())
	old, promoted := dial(t, c.Addr(2)), dial(t, c.Addr(5))
	old.want("+OK", "SET", "a", "1", "PX", "60000")
	old.want(":3", "HSET", "{a}h", "f", "1", "g", "2", "h", "3")
	old.want(`"…"`, "SCRIPT", "LOAD", increment)
	c.SetSkew(5, 10*time.Second)

	must(t, c.Failover(5))
	promoted.want(`"1"`, "GET", "a")
	promoted.want(":50000", "PTTL", "a") // the same instant, by a clock that is ahead
	promoted.want(`"2"`, "HGET", "{a}h", "g")
	promoted.want("-NOSCRIPT …", "EVALSHA", strings.Repeat("0", 40), "1", "a")
	old.want("-MOVED 15495 "+c.Addr(5), "GET", "a")
	old.want("+OK", "READONLY")
	old.want(`"1"`, "GET", "a")
	promoted.want(":2", "INCR", "a")
	old.want(`"2"`, "GET", "a")
	if got := c.Primaries(); fmt.Sprint(got) != "[0 1 5]" || c.Primary(2) != 5 || c.Owner(15495) != 5 {
		t.Errorf("primaries %v", got)
	}
	if c.Slots(2) != nil || fmt.Sprint(c.Slots(5)) != "[{10923 16383}]" {
		t.Errorf("slots: %v of node 2, %v of node 5", c.Slots(2), c.Slots(5))
	}
	promoted.want(":1", "WAIT", "1", "0")
	if err := c.Failover(5); !errors.Is(err, clustertest.ErrNode) {
		t.Errorf("failover to a primary: %v", err)
	}
	must(t, c.Failover(2)) // and back
	old.want(`"2"`, "GET", "a")
}

func TestScriptCacheStaysBehind(t *testing.T) {
	c := clustertest.Start(t)
	w := dial(t, c.Addr(2))
	sha := strings.Trim(w.do("SCRIPT", "LOAD", increment), `"`)
	w.want(":1", "EVALSHA", sha, "1", "a")
	must(t, c.Failover(5))
	dial(t, c.Addr(5)).want("-NOSCRIPT …", "EVALSHA", sha, "1", "a")
	must(t, c.Failover(2))
	w.want(":2", "EVALSHA", strings.ToUpper(sha), "1", "a")
	must(t, c.Kill(2))
	must(t, c.Restart(2))
	dial(t, c.Addr(2)).want("-NOSCRIPT …", "EVALSHA", sha, "1", "a")
}

func TestKillAndRestart(t *testing.T) {
	c := clustertest.Start(t)
	w, other := dial(t, c.Addr(2)), dial(t, c.Addr(0))
	w.want("+OK", "SET", "a", "1")
	run := w.do("INFO", "server")
	must(t, c.Kill(2))
	must(t, c.Kill(2)) // harmless
	if got, err := w.tryRead(); err == nil {
		t.Errorf("the connection lives: %s", got)
	}
	if nc, err := net.Dial("tcp", c.Addr(2)); err == nil {
		nc.Close()
		t.Error("a dead node accepts")
	}
	other.want("-CLUSTERDOWN The cluster is down", "GET", "b")
	other.want("-CLUSTERDOWN The cluster is down", "GET", "a")
	other.want(`"cluster_state:fail…cluster_slots_fail:5461…"`, "CLUSTER", "INFO")
	other.want(`"… master,fail - … disconnected 10923-16383\n…"`, "CLUSTER", "NODES")
	dial(t, c.Addr(5)).want(`"…master_link_status:down…"`, "INFO", "replication")

	must(t, c.Failover(5))
	other.want("nil", "GET", "b")
	other.want("-MOVED 15495 "+c.Addr(5), "GET", "a")
	dial(t, c.Addr(5)).want(":0", "WAIT", "1", "0")
	must(t, c.Restart(2))
	if err := c.Restart(2); !errors.Is(err, clustertest.ErrNode) {
		t.Errorf("restart of the living: %v", err)
	}
	w = dial(t, c.Addr(2))
	w.want("-MOVED 15495 "+c.Addr(5), "GET", "a")
	if again := w.do("INFO", "server"); again == run {
		t.Error("the same run_id after a restart")
	}
	dial(t, c.Addr(5)).want(":1", "WAIT", "1", "0")

	must(t, c.Kill(4))
	if err := c.Failover(4); !errors.Is(err, clustertest.ErrNode) {
		t.Errorf("failover to the dead: %v", err)
	}
}

func TestRestartWithoutFailover(t *testing.T) {
	c := clustertest.Start(t)
	dial(t, c.Addr(2)).want("+OK", "SET", "a", "1")
	must(t, c.Kill(2))
	must(t, c.Restart(2))
	dial(t, c.Addr(2)).want(`"1"`, "GET", "a")
}

func TestPartialCoverage(t *testing.T) {
	c := clustertest.Start(t, clustertest.WithPartialCoverage())
	w := dial(t, c.Addr(0))
	must(t, c.Kill(2))
	w.want("nil", "GET", "b")
	w.want("-MOVED 15495 "+c.Addr(2), "GET", "a")
	must(t, c.Unassign(3300))
	w.want("-CLUSTERDOWN Hash slot not served", "GET", "b")
	w.want("nil", "GET", "f")
	must(t, c.Kill(1)) // one of three is no majority
	w.want("-CLUSTERDOWN The cluster is down", "GET", "f")
}

func TestUnassignedSlot(t *testing.T) {
	c := clustertest.Start(t)
	w := dial(t, c.Addr(0))
	must(t, c.Unassign(3300))
	w.want("-CLUSTERDOWN Hash slot not served", "GET", "b")
	w.want("-CLUSTERDOWN The cluster is down", "GET", "f")
	if c.Owner(3300) != -1 {
		t.Errorf("owner %d", c.Owner(3300))
	}
	must(t, c.MoveSlot(3300, 1))
	w.want("nil", "GET", "f")
	w.want("-MOVED 3300 "+c.Addr(1), "GET", "b")
}

func TestHang(t *testing.T) {
	c := clustertest.Start(t)
	w, other := dial(t, c.Addr(2)), dial(t, c.Addr(0))
	must(t, c.Hang(2))
	must(t, c.Hang(2)) // harmless
	w.send("INCR", "a")
	gone := dial(t, c.Addr(2)) // a hung node still accepts
	gone.send("INCR", "a")
	until(t, func() bool { return c.Requests(2, "INCR") == 2 })
	gone.nc.Close()
	other.want("nil", "GET", "b") // the others go on
	if n := c.Calls(2, "INCR"); n != 0 {
		t.Errorf("%d calls while it hangs", n)
	}
	must(t, c.Resume(2))
	must(t, c.Resume(2))
	if got := w.read(); got != ":1" && got != ":2" {
		t.Errorf("after Resume: %s", got)
	}
	// What a client sent that gave up meanwhile runs too, as after SIGCONT.
	until(t, func() bool { return c.Calls(2, "INCR") == 2 })
}

func TestHungPrimaryLosesItsRole(t *testing.T) {
	c := clustertest.Start(t)
	w := dial(t, c.Addr(2))
	must(t, c.Hang(2))
	w.send("INCR", "a")
	must(t, c.Failover(5))
	dial(t, c.Addr(5)).want(":0", "WAIT", "1", "0")
	must(t, c.Resume(2))
	if got := w.read(); got != "-MOVED 15495 "+c.Addr(5) {
		t.Errorf("what waited in the hung primary: %s", got)
	}
	must(t, c.Hang(2))
	if err := c.Failover(2); !errors.Is(err, clustertest.ErrNode) {
		t.Errorf("failover to the hung: %v", err)
	}
}

// TestKillWhileHung: Close and Kill must not wait for commands that wait for Resume.
func TestKillWhileHung(t *testing.T) {
	c := clustertest.Start(t)
	w := dial(t, c.Addr(2))
	must(t, c.Hang(2))
	w.send("INCR", "a")
	until(t, func() bool { return c.Requests(2, "INCR") == 1 })
	must(t, c.Kill(2))
	if got, err := w.tryRead(); err == nil {
		t.Errorf("a reply from the dead: %s", got)
	}
	must(t, c.Restart(2))
	must(t, c.Resume(2))
	w = dial(t, c.Addr(2))
	w.want("nil", "GET", "a")
	must(t, c.Hang(2))
	w.send("INCR", "a")
	until(t, func() bool { return c.Requests(2, "INCR") == 2 })
	must(t, c.Close())
	must(t, c.Close()) // harmless
}

func TestFailoverCommand(t *testing.T) {
	c := clustertest.Start(t)
	must(t, c.Kill(2))
	w := dial(t, c.Addr(5))
	w.want("-ERR Master is down or failed, please use CLUSTER FAILOVER FORCE", "CLUSTER", "FAILOVER")
	w.want("-ERR syntax error", "CLUSTER", "FAILOVER", "NOW")
	w.want("+OK", "CLUSTER", "FAILOVER", "FORCE")
	w.want(":1", "INCR", "a")
}

func TestNoSuchNode(t *testing.T) {
	c := clustertest.Start(t)
	for _, node := range []int{-1, clustertest.Nodes} {
		for name, f := range map[string]func(int) error{
			"Kill": c.Kill, "Restart": c.Restart, "Hang": c.Hang, "Resume": c.Resume, "Failover": c.Failover,
			"MoveSlot": func(n int) error { return c.MoveSlot(0, n) },
		} {
			if err := f(node); !errors.Is(err, clustertest.ErrNode) {
				t.Errorf("%s(%d): %v", name, node, err)
			}
		}
	}
}

// TestEverythingAtOnce is for the race detector.
func TestEverythingAtOnce(t *testing.T) {
	c := clustertest.Start(t)
	cl := client(t, c)
	ctx := t.Context()
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 60 {
				cl.Eval(ctx, increment, []string{fmt.Sprintf("k%d", i*j)}) // what comes of it is not the matter here
			}
		})
	}
	for i := range 20 {
		must(t, c.Failover([]int{5, 2}[i%2]))
		must(t, c.MoveSlot(i, 1))
		must(t, c.Hang(4))
		c.Dump(0)
		c.Check()
		c.LoseReplies(nil, 1, clustertest.Cut)
		must(t, c.Resume(4))
		must(t, c.Kill(3))
		must(t, c.Restart(3))
	}
	wg.Wait()
	c.Flush()
	if err := c.Check(); err != nil {
		t.Error(err)
	}
}
