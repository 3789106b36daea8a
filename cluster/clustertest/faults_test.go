package clustertest_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/slotlimit/slotlimit/cluster/clustertest"
)

const increment = "return redis.call('INCR', KEYS[1])"

// TestLostReplyRanOnce is what the whole of ErrAmbiguous is about: the script ran,
// once, and the client cannot know.
func TestLostReplyRanOnce(t *testing.T) {
	c := clustertest.Start(t)
	w := dial(t, c.Addr(2))
	w.want("+OK", "SET", "a", "10")
	lost := c.LoseReplies(clustertest.On(clustertest.AllNodes, "eval"), 2, clustertest.Cut)
	for range 2 {
		w := dial(t, c.Addr(2))
		w.want(`"10…`, "ECHO", "10") // not what matches
		w.send("EVAL", increment, "1", "a")
		if got, err := w.tryRead(); !errors.Is(err, io.EOF) {
			t.Fatalf("the reply arrived: %q, %v", got, err)
		}
	}
	w.want(":13", "EVAL", increment, "1", "a") // the budget of 2 is used up
	if lost.Hits() != 2 {
		t.Errorf("%d replies lost, want 2", lost.Hits())
	}
}

// TestDefaultClientCountsTwice shows why plain go-redis miscounts: it repeats what
// had run, and reports success.
func TestDefaultClientCountsTwice(t *testing.T) {
	c := clustertest.Start(t)
	cl := client(t, c)
	c.LoseReplies(nil, 1, clustertest.Cut)
	n, err := cl.Eval(t.Context(), increment, []string{"a"}).Int()
	if err != nil || n != 2 {
		t.Errorf("one Eval: %d, %v; want 2 without an error", n, err)
	}
}

func TestSilentLoss(t *testing.T) {
	c := clustertest.Start(t)
	w, other := dial(t, c.Addr(2)), dial(t, c.Addr(2))
	lost := c.LoseReplies(nil, 1, clustertest.Silence)
	// A pipeline: what was sent before is answered, what comes behind does not run.
	// One write, so that the node has it all before it answers.
	const incr = "*2\r\n$4\r\nINCR\r\n$1\r\na\r\n"
	io.WriteString(w.nc, "*1\r\n$4\r\nPING\r\n"+incr+incr)
	if got := w.read(); got != "+PONG" {
		t.Errorf("the reply before the lost one: %s", got)
	}
	until(t, func() bool { return lost.Hits() == 1 })
	other.want(`"1"`, "GET", "a")
	if err := c.Kill(2); err != nil {
		t.Fatal(err)
	}
	if got, err := w.tryRead(); err == nil {
		t.Errorf("after silence and death: %s", got)
	}
	if n := c.Calls(2, "INCR"); n != 1 {
		t.Errorf("INCR ran %d times, want 1", n)
	}
}

func TestLoseFraction(t *testing.T) {
	run := func(seed uint64) string {
		c := clustertest.Start(t)
		lost := c.LoseFraction(nil, 0.3, seed, clustertest.Cut)
		var pattern strings.Builder
		w := dial(t, c.Addr(2))
		const calls = 100
		for range calls {
			w.send("INCR", "a")
			if _, err := w.tryRead(); err != nil {
				pattern.WriteByte('x')
				w = dial(t, c.Addr(2))
				continue
			}
			pattern.WriteByte('.')
		}
		n := strings.Count(pattern.String(), "x")
		if n != lost.Hits() || n < 10 || n > 60 {
			t.Errorf("seed %d: %d of %d lost, %d counted", seed, n, calls, lost.Hits())
		}
		lost.Stop()
		w.want(":101", "INCR", "a")
		return pattern.String()
	}
	first := run(1)
	if again := run(1); again != first {
		t.Errorf("seed 1 twice:\n%s\n%s", first, again)
	}
	if other := run(2); other == first {
		t.Error("seeds 1 and 2 lose the same replies")
	}
}

func TestInjectedErrors(t *testing.T) {
	c := clustertest.Start(t)
	w := dial(t, c.Addr(2))
	loading := c.Fail(clustertest.On(2, "INCR"), 2, "LOADING Redis is loading the dataset in memory")
	w.want("nil", "GET", "a")
	w.want("-LOADING Redis is loading the dataset in memory", "INCR", "a")
	w.want("-LOADING Redis is loading the dataset in memory", "INCR", "b") // before the check of the slot
	w.want(":1", "INCR", "a")
	if loading.Hits() != 2 || c.Calls(2, "incr") != 1 || c.Requests(2, "incr") != 3 {
		t.Errorf("%d hits, %d calls, %d requests", loading.Hits(), c.Calls(2, "incr"), c.Requests(2, "incr"))
	}

	down := c.Fail(nil, -1, "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.")
	for range 3 {
		w.want("-MASTERDOWN …", "GET", "a")
		w.want("+PONG", "PING") // names no key
	}
	down.Stop()
	down.Stop() // harmless
	w.want(`"1"`, "GET", "a")

	c.Fail(nil, 1, "OOM command not allowed when used memory > 'maxmemory'.")
	w.want("+OK", "MULTI")
	w.want("-OOM …", "SET", "a", "2")
	w.want("-EXECABORT …", "EXEC")
	if f := c.Fail(nil, 0, "ERR never"); f.Hits() != 0 {
		t.Error("a fault of no hits has hits")
	}
	w.want(`"1"`, "GET", "a")
}

// TestRedirectsAreNotLost: a reply that is MOVED is no reply of a command that ran.
func TestRedirectsAreNotLost(t *testing.T) {
	c := clustertest.Start(t)
	lost := c.LoseReplies(nil, 1, clustertest.Cut)
	dial(t, c.Addr(0)).want("-MOVED 15495 …", "INCR", "a")
	if lost.Hits() != 0 {
		t.Errorf("%d lost", lost.Hits())
	}
}

func TestClientMeetsInjectedTryAgain(t *testing.T) {
	c := clustertest.Start(t)
	cl := client(t, c)
	ctx := t.Context()
	if err := cl.Set(ctx, "a", 0, 0).Err(); err != nil {
		t.Fatal(err)
	}
	f := c.Fail(clustertest.On(clustertest.AllNodes, "INCR"), 1, "TRYAGAIN Multiple keys request during rehashing of slot")
	cmds, err := cl.Pipelined(ctx, func(p redis.Pipeliner) error {
		for range 3 {
			p.Incr(ctx, "a")
		}
		return nil
	})
	// go-redis sends the whole batch again for an error of its first command, so the
	// two that had run run twice. Package cluster must not.
	if n := cmds[2].(*redis.IntCmd).Val(); err != nil || n != 5 || f.Hits() != 1 {
		t.Errorf("the third of three INCRs: %d, %v, %d hits; want 5", n, err, f.Hits())
	}
}
