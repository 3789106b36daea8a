package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/slotlimit/slotlimit/cluster/clustertest"
	"github.com/slotlimit/slotlimit/cluster/servertest"
)

func TestMain(m *testing.M) {
	redis.SetLogger(silence{})
	servertest.VerifyMain(m)
}

// runWith runs the program with these contenders, as main does with its own.
func runWith(t *testing.T, all []contender, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	status = (&program{stdout: &out, stderr: &errs, contenders: all}).run(t.Context(), args)
	return status, out.String(), errs.String()
}

// small are the flags of a comparison that takes a moment.
func small(addrs []string) []string {
	return []string{"-addrs", strings.Join(addrs, ","), "-users", "30", "-goroutines", "1,5", "-rounds", "2", "-duration", "20ms"}
}

// readResult reads what -json wrote.
func readResult(t *testing.T, file string) (r result) {
	t.Helper()
	content, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(content, &r)
	}
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// All limiters, workloads and outputs, on the cluster inside this process: it is slow, and what
// is not counted there is not counted anywhere.
func TestCompare(t *testing.T) {
	c := clustertest.Start(t)
	file, picture := filepath.Join(t.TempDir(), "result.json"), filepath.Join(t.TempDir(), "plot.svg")
	status, stdout, stderr := runWith(t, contenders, append(small(c.Addrs()), "-json", file, "-plot", picture)...)
	if status != exitOK {
		t.Fatalf("exit status %d: %s\n%s", status, stderr, stdout)
	}
	for _, want := range []string{
		"one hot user; ", "30 users, uniform; ", "30 users, zipf 1.1; ", "github.com/go-redis/redis_rate/v10 v10.",
		"slotlimit   counted right", "redis_rate  counted right", "ulule       counted right",
		"throttled   counted right", "evalsha     counted right", "pipeline    counted right",
		`limit: of 400 attempts, limit 50: allowed 50, denied 350`, `odd users: 13 users such as "}`,
	} {
		if !strings.Contains(stdout, want) {
			t.Errorf("no %q in\n%s", want, stdout)
		}
	}
	got := readResult(t, file)
	if want := 3 * 2 * len(contenders); !got.OK || len(got.Rows) != want || len(got.Samples) != 2*want || len(got.Findings) != 2*len(contenders) {
		t.Errorf("ok %t, %d rows, %d samples, %d findings", got.OK, len(got.Rows), len(got.Samples), len(got.Findings))
	}
	// Who comes first changes from round to round.
	for round, i := range []int{0, len(got.Samples) / 2} {
		s := got.Samples[i]
		if s.Round != round || s.Limiter != contenders[round].name || s.Goroutines != []int{1, 5}[round] {
			t.Errorf("round %d begins with %s, %v", s.Round, s.Limiter, s.row())
		}
	}
	for _, s := range got.Samples {
		if s.Decisions == 0 && s.Errors == 0 || s.Seen < 1 || s.Seen > s.Users || s.Decisions > 0 && s.P50 <= 0 {
			t.Errorf("a sample of nothing: %+v", s)
		}
	}
	if svg, err := os.ReadFile(picture); err != nil || !bytes.Contains(svg, []byte("</svg>")) {
		t.Errorf("the picture: %v, %d bytes", err, len(svg))
	}
	for node := range clustertest.Nodes {
		if left := c.Keys(node); len(left) > 0 {
			t.Errorf("node %d still holds %d keys, such as %q", node, len(left), left[0])
		}
	}
}

// Every limiter is asked for the same users in the same order: that of the seed, round and row.
func TestSameUsers(t *testing.T) {
	c := clustertest.Start(t)
	var orders [2][]string
	var all []contender
	for i, name := range []string{"first", "second"} {
		all = append(all, contender{name: name, keys: oneKey(name), open: func(_ context.Context, _ *target, q quota) (rival, error) {
			return single(func(_ context.Context, user string) (bool, error) {
				if q == ample && len(orders[i]) < 100 {
					orders[i] = append(orders[i], user)
				}
				return true, nil
			}), nil
		}})
	}
	runWith(t, all, "-addrs", c.Addr(0), "-users", "5", "-goroutines", "1", "-rounds", "1", "-duration", "10ms", "-workload", "uniform")
	// The first ones are those that ask for each user once, in any order.
	a, b := strings.Join(orders[0][5:], " "), strings.Join(orders[1][5:], " ")
	if a != b || len(orders[0]) < 100 {
		t.Errorf("%s\n%s", a, b)
	}
}

func TestInterrupt(t *testing.T) {
	c := clustertest.Start(t)
	ctx, cancel := context.WithCancel(t.Context())
	var out, errs bytes.Buffer
	all := []contender{{name: "one", keys: oneKey("one"), open: func(_ context.Context, _ *target, q quota) (rival, error) {
		calls := 0
		return single(func(ctx context.Context, _ string) (bool, error) {
			if q == ample {
				if calls++; calls == 10 {
					cancel()
				}
			}
			return true, ctx.Err() // no call is broken off
		}), nil
	}}}
	p := &program{stdout: &out, stderr: &errs, contenders: all}
	status := p.run(ctx, []string{"-addrs", c.Addr(0), "-goroutines", "1", "-workload", "hot", "-duration", "1h"})
	if status != exitUsage || !strings.HasSuffix(errs.String(), "compare: interrupted before anything was measured\n") {
		t.Errorf("exit status %d: %s", status, errs.String())
	}
}

func TestNoCluster(t *testing.T) {
	port, err := servertest.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"-addrs", addr(port)},
		{"-addrs", "nonsense"},
		{"-addrs", "redis://127.0.0.1:port"},
		{"-json", filepath.Join(t.TempDir(), "no", "folder")},
		{"-plot", filepath.Join(t.TempDir(), "no", "folder")},
		{"pause", "-addrs", addr(port)},
	} {
		status, stdout, stderr := runWith(t, contenders, args...)
		if status != exitUsage || stdout != "" || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%v: exit status %d, stdout %q, stderr %q", args, status, stdout, stderr)
		}
	}
}
