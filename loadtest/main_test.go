package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/slotlimit/slotlimit/cluster/clustertest"
	"github.com/slotlimit/slotlimit/cluster/servertest"
	"github.com/slotlimit/slotlimit/limiter"
	"github.com/slotlimit/slotlimit/loadtest/audit"
	"github.com/slotlimit/slotlimit/loadtest/loadgen"
)

func TestMain(m *testing.M) {
	redis.SetLogger(silence{})
	servertest.VerifyMain(m)
}

// loadtest runs the program as main does.
func loadtest(t *testing.T, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	status = run(t.Context(), args, &out, &errs)
	return status, out.String(), errs.String()
}

// small are the flags of a load that takes a moment.
var small = []string{"-users", "50", "-requests", "2000", "-workers", "16", "-limit", "30/366d"}

func TestLoadtest(t *testing.T) {
	file := filepath.Join(t.TempDir(), "result.json")
	status, stdout, stderr := loadtest(t, append(small, "-json", file)...)
	if status != exitOK || stderr != "" {
		t.Fatalf("exit status %d: %s\n%s", status, stderr, stdout)
	}
	for _, want := range []string{"ok   counters ", "ok   limit ", "ok   placement ", "ok   spread ", "ok   expiry ", "PROVEN: all 5 checks hold"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("no %q in\n%s", want, stdout)
		}
	}
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		OK                                                                      bool
		Requests, Acknowledged, Allowed, Denied, Ambiguous, Unavailable, Stored int64
		Checks                                                                  []struct {
			Name   string
			OK     bool
			Detail string
		}
		Nodes    []struct{ Requests int64 }
		CutShort *bool `json:"cut_short"`
	}
	if err := json.Unmarshal(content, &got); err != nil {
		t.Fatalf("%v in %s", err, content)
	}
	if !got.OK || got.Requests != 2000 || got.Acknowledged != 2000 || got.Stored != 2000 || got.Ambiguous+got.Unavailable != 0 {
		t.Errorf("totals: %s", content)
	}
	if got.Allowed+got.Denied != 2000 || got.Denied == 0 {
		t.Errorf("allowed %d, denied %d", got.Allowed, got.Denied)
	}
	if len(got.Checks) != 5 || len(got.Nodes) != 3 || got.CutShort == nil || *got.CutShort {
		t.Errorf("checks, nodes or cut_short: %s", content)
	}
}

func TestBadUsage(t *testing.T) {
	for _, args := range []string{
		"-nosuch", "nosuch", "-users 0", "-users x", "-users 5000000000", "-requests 0", "-workers -1", "-limit 100",
		"-limit 1/1us", "-timeout 0s", "-grace 11m", "-grace 0s", "-prefix a{b", "-prefix=", "-workers 5000", "boundary -workers 5000", "boundary -limit 20001/1m", "-json /nosuch/dir/file", "-addrs http://x",
		"-addrs nosuch", "boundary -users 5", "boundary -limit 0/1m", "boundary -workers 0", "boundary extra",
	} {
		status, stdout, stderr := loadtest(t, strings.Fields(args)...)
		if status != exitUsage || stdout != "" || strings.Count(stderr, "\n") != 1 || !strings.HasPrefix(stderr, "loadtest") {
			t.Errorf("%s: exit status %d, stdout %q, stderr %q; want 2 and one line", args, status, stdout, stderr)
		}
	}
}

func TestUnreachable(t *testing.T) {
	c := clustertest.Start(t)
	addrs := strings.Join(c.Addrs(), ",")
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"-addrs", addrs}, {"boundary", "-addrs", addrs}} {
		status, stdout, stderr := loadtest(t, args...)
		if status != exitUsage || stdout != "" || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, "no node reachable") {
			t.Errorf("%v: exit status %d, stdout %q, stderr %q; want 2 and one line", args, status, stdout, stderr)
		}
	}
}

// The cluster goes away after the start: nothing can be proven.
func TestNoDecision(t *testing.T) {
	var stdout, stderr bytes.Buffer
	p := newProgram(&stdout, &stderr)
	p.limiter = func(s setup) (underTest, error) {
		s.target.inner.Fail(clustertest.On(clustertest.AllNodes, "EVALSHA", "EVAL"), -1, "OOM command not allowed")
		return newLimiter(s)
	}
	if status := p.run(t.Context(), small); status != exitUsage || !strings.Contains(stderr.String(), "none of 2000 requests got a decision") {
		t.Errorf("exit status %d, stderr %q", status, &stderr)
	}
}

// A run removes its own counters, and no others.
func TestCountersAreRemoved(t *testing.T) {
	c := clustertest.Start(t)
	all := func() (n int) {
		for _, node := range c.Primaries() {
			n += len(c.Keys(node))
		}
		return n
	}
	url := "redis://" + c.Addrs()[0] + "?addr=" + c.Addrs()[1]
	if status, stdout, stderr := loadtest(t, append(small, "-keep", "-addrs", url)...); status != exitOK {
		t.Fatalf("exit status %d: %s%s", status, stderr, stdout)
	}
	kept := all()
	if kept < 50 {
		t.Fatalf("-keep keeps %d counters of 50 users", kept)
	}
	if err := c.Check(); err != nil {
		t.Error(err)
	}
	if status, stdout, stderr := loadtest(t, append(small, "-addrs", strings.Join(c.Addrs(), ","))...); status != exitOK {
		t.Fatalf("exit status %d: %s%s", status, stderr, stdout)
	}
	if n := all(); n != kept {
		t.Errorf("%d counters are left, should be the %d of the run that kept them", n, kept)
	}
}

// Keys that others made under the prefix are left alone, and a run that would take
// them for its own does not start.
func TestPrefixInUse(t *testing.T) {
	c := clustertest.Start(t)
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: c.Addrs()})
	defer client.Close()
	if err := client.Set(t.Context(), "session:42", "x", time.Hour).Err(); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "result.json")
	if err := os.WriteFile(file, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	status, _, stderr := loadtest(t, append(small, "-addrs", c.Addr(0), "-prefix", "session", "-json", file)...)
	if status != exitUsage || !strings.Contains(stderr, `"session:42"`) {
		t.Errorf("exit status %d, stderr %q, want 2 and the key", status, stderr)
	}
	if left := client.Get(t.Context(), "session:42").Val(); left != "x" {
		t.Errorf("session:42 holds %q after the run", left)
	}
	if old, err := os.ReadFile(file); err != nil || string(old) != "old" {
		t.Errorf("-json holds %q, %v after a run without a result", old, err)
	}
}

// Keys that turn up under the prefix while the run is on are no counters that it
// was told of: they fail the run, and stay.
func TestForeignKeysStay(t *testing.T) {
	c := clustertest.Start(t)
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: c.Addrs()})
	defer client.Close()
	var stdout, stderr bytes.Buffer
	p := newProgram(&stdout, &stderr)
	p.limiter = func(s setup) (underTest, error) {
		if err := client.Set(t.Context(), s.prefix+":42", "x", time.Hour).Err(); err != nil {
			t.Error(err)
		}
		return newLimiter(s)
	}
	status := p.run(t.Context(), append(small, "-addrs", c.Addr(0), "-prefix", "mine"))
	if status != exitFailed || client.Get(t.Context(), "mine:42").Val() != "x" {
		t.Errorf("exit status %d, %q left; want 1, and the key\n%s%s", status, client.Get(t.Context(), "mine:42").Val(), &stderr, &stdout)
	}
}

// Errors that pass do not decide what a counter holds.
func TestReadingAgain(t *testing.T) {
	c := clustertest.Start(t)
	fault := c.Fail(clustertest.On(clustertest.AllNodes, "GET"), 5, "CLUSTERDOWN The cluster is down")
	status, stdout, stderr := loadtest(t, append(small, "-addrs", c.Addr(0))...)
	if status != exitOK || fault.Hits() != 5 {
		t.Errorf("exit status %d after %d errors, want 0 after 5\n%s%s", status, fault.Hits(), stderr, stdout)
	}
}

func TestProgressLine(t *testing.T) {
	tally := audit.Tally{Acknowledged: 50, Allowed: 30, Ambiguous: 2, Unavailable: 8}
	for want, load := range map[string]loadgen.Load{
		"60 of 240 (25 %), 30/s: allowed 30, denied 20, ambiguous 2, unavailable 8": {Requests: 240},
		"60 (2 of 10 s), 30/s: allowed 30, denied 20, ambiguous 2, unavailable 8":   {Duration: 10 * time.Second},
	} {
		if got := line(tally, load, 2*time.Second); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// Lost replies are no fault of the limiter: they are said, and all checks hold.
func TestLostRepliesAreAmbiguous(t *testing.T) {
	var stdout, stderr bytes.Buffer
	p := newProgram(&stdout, &stderr)
	var lost *clustertest.Fault
	p.limiter = func(s setup) (underTest, error) {
		lost = s.target.inner.LoseReplies(clustertest.On(clustertest.AllNodes, "EVALSHA", "EVAL"), 20, clustertest.Cut)
		return newLimiter(s)
	}
	if status := p.run(t.Context(), small); status != exitOK || lost.Hits() != 20 {
		t.Errorf("exit status %d after %d lost replies: %s%s", status, lost.Hits(), &stderr, &stdout)
	}
	// A reply that is lost with its connection takes with it those that were to follow.
	_, line, _ := strings.Cut(stdout.String(), "requests 2000 = ")
	var acknowledged, ambiguous int
	_, err := fmt.Sscanf(line, "acknowledged %d + ambiguous %d + unavailable 0", &acknowledged, &ambiguous)
	if err != nil || ambiguous < 20 || acknowledged+ambiguous != 2000 {
		t.Errorf("20 lost replies are not told (%v):\n%s", err, &stdout)
	}
}

// between is a limiter that calls a function before each request.
type between struct {
	limiter.Allower
	before func()
}

func (b between) AllowN(ctx context.Context, user string, n int64) (limiter.Result, error) {
	b.before()
	return b.Allower.AllowN(ctx, user, n)
}

func TestCutShort(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var stdout, stderr bytes.Buffer
	p := newProgram(&stdout, &stderr)
	p.limiter = func(s setup) (underTest, error) {
		lim, err := newLimiter(s)
		calls := 0
		return between{lim, func() {
			if calls++; calls == 100 {
				cancel()
			}
		}}, err
	}
	file := filepath.Join(t.TempDir(), "result.json")
	if status := p.run(ctx, []string{"-workers", "1", "-json", file}); status != exitOK {
		t.Errorf("exit status %d: %s%s", status, &stderr, &stdout)
	}
	if !strings.Contains(stdout.String(), "CUT SHORT: 100 of 30000 requests were sent") {
		t.Errorf("it is not told:\n%s", &stdout)
	}
	content, err := os.ReadFile(file)
	if err != nil || !bytes.Contains(content, []byte(`"cut_short": true`)) || !bytes.Contains(content, []byte(`"stored": 100,`)) {
		t.Errorf("%v, JSON: %s", err, content)
	}
}

// Counters that expire before the run ends are read while it goes on. Without that, the
// run must not pass.
func TestLongRunWithShortWindows(t *testing.T) {
	for _, collected := range []bool{true, false} {
		var stdout, stderr bytes.Buffer
		p := newProgram(&stdout, &stderr)
		ticks := make(chan time.Time)
		p.ticks = func(time.Duration) (<-chan time.Time, func()) { return ticks, func() {} }
		p.limiter = func(s setup) (underTest, error) {
			lim, err := newLimiter(s)
			calls := 0
			return between{lim, func() {
				if calls++; calls%100 != 0 {
					return
				}
				now := s.target.inner.Now(0) // into the next window, but not by more than the grace
				s.target.inner.Advance(now.Truncate(time.Hour).Add(time.Hour + time.Second).Sub(now))
				if collected {
					ticks <- time.Time{} // the second one is taken when the pass of the first is over
					ticks <- time.Time{}
				}
			}}, err
		}
		status := p.run(t.Context(), []string{"-users", "10", "-requests", "500", "-workers", "1", "-limit", "5/1h", "-grace", "10m"})
		want, line := exitOK, "stored 500, acknowledged 500"
		if !collected {
			want, line = exitFailed, "but the counter had expired before it could be read"
		}
		if status != want || !strings.Contains(stdout.String(), line) {
			t.Errorf("collected %v: exit status %d, want %d and %q\n%s%s", collected, status, want, line, &stderr, &stdout)
		}
	}
}

func TestRealCluster(t *testing.T) {
	c := servertest.Shared(t)
	status, stdout, stderr := loadtest(t, "-addrs", strings.Join(c.Addrs(), ","), "-users", "500", "-requests", "20000", "-limit", "30/1m")
	if status != exitOK {
		t.Errorf("exit status %d: %s%s", status, stderr, stdout)
	}
}
