package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/slotlimit/slotlimit/cluster/clustertest"
	"github.com/slotlimit/slotlimit/cluster/servertest"
	"github.com/slotlimit/slotlimit/loadtest/faults"
)

// faulty is what the tests look for in the JSON of a run.
type faulty struct {
	OK                                              bool
	Requests, Acknowledged, Ambiguous, Stored, Lost int64
	Unavailable                                     int64
	Losses                                          []struct{ Lost int64 }
	Faults                                          []struct {
		Fault, Node, Shard, Error string
		Recovery                  *float64 `json:"recovery_seconds"`
		Failed                    []struct{ Ambiguous, Unavailable int64 }
	}
	Timeline []struct{ Text string }
	Shards   []struct{ Acknowledged int64 }
}

// told says whether a line of the timeline holds these words.
func (f faulty) told(words string) bool {
	for _, m := range f.Timeline {
		if strings.Contains(m.Text, words) {
			return true
		}
	}
	return false
}

// withFaults runs the load test with faults, and wants this exit status.
func withFaults(t *testing.T, want int, args ...string) (got faulty, stdout, stderr string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "result.json")
	status, stdout, stderr := loadtest(t, append(args, "-workers", "16", "-limit", "30/366d", "-json", file)...)
	if status != want {
		t.Fatalf("%v: exit status %d, want %d: %s\n%s", args, status, want, stderr, stdout)
	}
	content, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(content, &got)
	}
	if err != nil {
		t.Fatalf("%v: %v in %s", args, err, content)
	}
	return got, stdout, stderr
}

// Every fault that can be made to the cluster inside the process is made, callers are served
// again, and no count is lost: its replicas are copies at every moment.
func TestFaultsInProcess(t *testing.T) {
	for _, test := range []struct{ fault, told string }{
		{"failover@100ms", ", graceful"},
		{"takeover@100ms", "noticed: promotion"},
		{"kill@100ms", "started again"},
		{"restart@100ms", "noticed: restart"},
		{"pause:300ms@100ms", "it runs on"},
		{"reshard:60@100ms", "reshard: moved 60 slots"},
		{"migrate:300ms@100ms", "migrate: moved"},
		{"flush:300ms@100ms", "flush: flushed"},
	} {
		t.Run(test.fault, func(t *testing.T) {
			got, stdout, stderr := withFaults(t, exitOK, "-fault", test.fault, "-duration", "3s")
			if stderr != "" || got.Lost != 0 || len(got.Faults) != 1 || got.Faults[0].Recovery == nil || got.Faults[0].Error != "" {
				t.Errorf("stderr %q, %+v", stderr, got)
			}
			if !got.told(test.told) || !strings.Contains(stdout, test.told) {
				t.Errorf("no %q in the timeline\n%s", test.told, stdout)
			}
			if len(got.Shards) != clustertest.Shards {
				t.Errorf("%d shards", len(got.Shards))
			}
		})
	}
}

// Each fault is for the next shard.
func TestFaultsTakeTurns(t *testing.T) {
	got, _, _ := withFaults(t, exitOK, "-fault", "takeover@100ms", "-fault", "takeover@300ms", "-fault", "takeover@500ms", "-duration", "1500ms")
	seen := map[string]bool{}
	for _, f := range got.Faults {
		seen[f.Shard] = true
	}
	if len(got.Faults) != 3 || len(seen) != 3 {
		t.Errorf("%+v", got.Faults)
	}
}

// What cannot be made is said before the load starts.
func TestImpossibleFaults(t *testing.T) {
	for args, want := range map[string]string{
		"-fault partition@1s":         "no network that could be cut",
		"-fault nosuch@1s":            "want one of clientpause, disconnect,",
		"-fault kill@3s -duration 2s": "-fault kill@3s: the load ends before",
		"-duration 0s":                "-duration: 0s",
		"-fault pause:2h@3s":          "want a duration",
		"-requests 0 -duration 5s":    "0 requests",
		"boundary -fault kill@1s":     "-fault",
	} {
		status, stdout, stderr := loadtest(t, strings.Fields(args)...)
		if status != exitUsage || stdout != "" || !strings.Contains(stderr, want) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%s: exit status %d, stdout %q, stderr %q; want 2 and %q", args, status, stdout, stderr, want)
		}
	}
}

// A fault that is not made for want of time makes the run no proof of what was asked for.
func TestFaultThatComesTooLate(t *testing.T) {
	got, stdout, stderr := withFaults(t, exitUsage, "-fault", "flush@30s", "-requests", "200")
	if !got.OK || !strings.Contains(stderr, "-fault flush@30s: the load had ended before") || !strings.Contains(stdout, "NOT MADE") {
		t.Errorf("stderr %q\n%s", stderr, stdout)
	}
}

// Without -duration and -requests, the load is as long as the faults need it.
func TestDefaultDuration(t *testing.T) {
	for args, want := range map[string]struct {
		duration time.Duration
		requests int64
	}{
		"":                                  {0, 30000},
		"-duration 5s":                      {5 * time.Second, 0},
		"-duration 5s -requests 7":          {5 * time.Second, 7},
		"-fault pause@3s":                   {18 * time.Second, 0},
		"-fault kill@3s -requests 7":        {0, 7},
		"-fault kill@3s -duration 4s":       {4 * time.Second, 0},
		"-fault kill@3s -fault failover@9s": {19 * time.Second, 0},
	} {
		o, err := parse("loadtest", strings.Fields(args))
		if err != nil || o.duration != want.duration || o.requests != want.requests {
			t.Errorf("%q: %v and %d requests, %v; want %+v", args, o.duration, o.requests, err, want)
		}
	}
}

// The flag's text form is what it was given.
func TestFaultList(t *testing.T) {
	o, err := parse("loadtest", strings.Fields("-fault kill@1s -fault reshard:7@2s -duration 3s"))
	if err != nil || o.faults.String() != "kill@1s reshard:7@2s" || o.faults[1] != (faults.Fault{Name: "reshard", Slots: 7, At: 2 * time.Second}) {
		t.Errorf("%v, %v", o.faults, err)
	}
}

// Real servers lose what a replica did not have when its primary was killed, and that is told.
// Nothing else may be lost or counted twice.
func TestFaultsOnRealServers(t *testing.T) {
	c := servertest.Start(t)
	addrs := strings.Join(c.Addrs(), ",")
	t.Cleanup(func() { endStrangers(t, c) })
	for _, test := range []struct {
		faults string
		told   []string
	}{
		{"-fault reshard:200@500ms -fault failover@1s -fault flush:1s@2s -duration 6s", []string{"reshard: moved 200 slots", ", graceful", "flushed"}},
		{"-fault clientpause:500ms@500ms -fault disconnect@2s -fault takeover@3s -duration 5s", []string{"clientpause", "disconnect", "noticed: promotion"}},
		{"-fault kill@500ms -duration 8s", []string{"noticed: promotion", "is replaced", "started again", "the cluster is whole"}},
		{"-fault restart@500ms -duration 6s", []string{"noticed: restart", "started"}},
	} {
		t.Run(test.faults, func(t *testing.T) {
			got, stdout, stderr := withFaults(t, exitOK, append(strings.Fields(test.faults), "-addrs", addrs)...)
			for _, words := range test.told {
				if !got.told(words) {
					t.Errorf("no %q in the timeline\n%s", words, stdout)
				}
			}
			for _, f := range got.Faults {
				if f.Recovery == nil || f.Error != "" {
					t.Errorf("%+v; stderr %s", f, stderr)
				}
			}
			if strings.Contains(test.faults, "reshard") && (got.Stored != got.Acknowledged || got.Ambiguous != 0 || got.Unavailable != 0) {
				t.Errorf("nothing of this loses a reply: %+v\n%s", got, stdout)
			}
			if strings.Contains(test.faults, "restart") && (got.Lost == 0 || len(got.Losses) == 0) {
				t.Errorf("a primary that comes back empty loses nothing? %+v\n%s", got, stdout)
			}
			if err := c.WaitWhole(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// endStrangers ends the servers that were started again by the run and not by servertest. They
// outlive this process, as they should, but not the test, whose context has ended by now.
func endStrangers(t *testing.T, c *servertest.Cluster) {
	for _, n := range c.Nodes() {
		client := redis.NewClient(&redis.Options{Addr: n.Addr, MaxRetries: -1, DialerRetries: 1})
		info, err := client.Info(context.Background(), "server").Result()
		client.Close()
		_, rest, _ := strings.Cut(info, "process_id:")
		number, _, _ := strings.Cut(rest, "\r")
		if pid, convErr := strconv.Atoi(number); err == nil && convErr == nil && pid != n.PID() {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Error(err)
			}
		}
	}
}
