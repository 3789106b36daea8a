package report_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/slotlimit/slotlimit/loadtest/audit"
	"github.com/slotlimit/slotlimit/loadtest/report"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares with a file in testdata.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
	}
}

func result() report.Result {
	return report.Result{
		InProcess: true, Users: 3, Planned: 300, Workers: 4, Limit: "100/1m", Seed: 1, Prefix: "lt-1",
		Took: 1500 * time.Millisecond,
		Verdict: audit.Verdict{
			Totals: audit.Totals{Requests: 300, Acknowledged: 298, Allowed: 200, Denied: 98, Ambiguous: 1, Unavailable: 1, Stored: 299},
			Checks: []audit.Check{
				{Name: "counters", OK: true, Detail: "3 counters"},
				{Name: "limit", OK: true, Detail: "3 users and windows"},
			},
			Nodes: []audit.Node{
				{Addr: "127.0.0.1:7001", Slots: 8192, Users: 2, Keys: 2, Requests: 198, Allowed: 150, Denied: 48, Share: 198.0 / 298},
				{Addr: "127.0.0.1:7002", Slots: 8192, Users: 1, Keys: 1, Requests: 100, Allowed: 50, Denied: 50, Share: 100.0 / 298},
			},
		},
	}
}

// broken is a run that was cut short, with a check that does not hold.
func broken() report.Result {
	r := result()
	r.InProcess, r.CutShort, r.Planned = false, true, 5000
	r.Verdict.Checks[0] = audit.Check{
		Name: "counters", Detail: "3 counters", More: 7,
		Offenders: []string{`user "alice" window 29139840: stored 103, told 100 (+1 ambiguous)`},
	}
	return r
}

// disturbed is a run with faults of its own, and losses that they explain.
func disturbed() report.Result {
	r := result()
	r.Planned, r.Durable = 0, true
	r.Verdict.Ambiguities = []audit.Ambiguity{{Shard: "127.0.0.1:7004", Cause: audit.CauseEOF, Calls: 1}}
	r.Verdict.Losses = []audit.Loss{{Shard: "127.0.0.1:7001", Counters: 1, Lost: 2, Events: []audit.Event{{
		Kind: audit.Promotion, Node: "127.0.0.1:7004", Was: "127.0.0.1:7001", Detail: "config epoch 1 -> 7",
	}}}}
	r.Faults = []report.Fault{
		{Fault: "kill@3s", At: 3001 * time.Millisecond, Shard: "127.0.0.1:7001", Node: "127.0.0.1:7001",
			Recovery: 4310 * time.Millisecond, Recovered: true,
			Failed: []report.Failed{{Shard: "127.0.0.1:7001", Ambiguous: 1, Unavailable: 20}, {Shard: "127.0.0.1:7002", Unavailable: 2}}},
		{Fault: "flush@4s", At: 4 * time.Second, Recovery: 17123 * time.Microsecond, Recovered: true},
		{Fault: "pause@5s", At: 5 * time.Second, Shard: "127.0.0.1:7001", Node: "127.0.0.1:7004"},
		{Fault: "failover@9s", Error: "the load had ended before"},
	}
	r.Moments = []report.Moment{
		{At: 3301 * time.Millisecond, Text: "kill: killed 127.0.0.1:7001 (process 4711)"},
		{At: 12 * time.Second, Text: "after the load: the cluster is whole"},
	}
	r.Shards = []report.Shard{
		{Name: "127.0.0.1:7001", Acknowledged: 198, Ambiguous: 1, Unavailable: 20, Gap: 4020 * time.Millisecond, GapAt: 3310 * time.Millisecond},
		{Name: "127.0.0.1:7002", Acknowledged: 100, Unavailable: 2, Gap: 12 * time.Millisecond, GapAt: time.Second},
	}
	return r
}

func TestText(t *testing.T) {
	for name, r := range map[string]report.Result{"proven.txt": result(), "broken.txt": broken(), "disturbed.txt": disturbed()} {
		var b bytes.Buffer
		if err := report.Text(&b, r); err != nil {
			t.Fatal(err)
		}
		golden(t, name, b.Bytes())
	}
}

func TestJSON(t *testing.T) {
	var b bytes.Buffer
	if err := report.JSON(&b, broken()); err != nil {
		t.Fatal(err)
	}
	golden(t, "broken.json", b.Bytes())
	var faulty bytes.Buffer
	if err := report.JSON(&faulty, disturbed()); err != nil {
		t.Fatal(err)
	}
	golden(t, "disturbed.json", faulty.Bytes())
	var totals audit.Totals
	if err := json.Unmarshal(b.Bytes(), &totals); err != nil || totals != broken().Verdict.Totals {
		t.Errorf("%v: the totals read back are %+v", err, totals)
	}
}

func boundary() report.Boundary {
	b := report.Boundary{Limit: "20/1m", Rate: 20, Period: time.Minute, Window: 100}
	for i := range int64(50) {
		at := int64(101*60000) - 1500 + i%25 // 1.5 s before the boundary
		if i >= 25 {
			at += 1600 // 0.1 s after it
		}
		b.Events = append(b.Events, report.Event{At: at, Allowed: i%25 < 20})
	}
	return b
}

func TestTimeline(t *testing.T) {
	var b bytes.Buffer
	if err := report.Timeline(&b, boundary()); err != nil {
		t.Fatal(err)
	}
	golden(t, "boundary.txt", b.Bytes())
}

// The peak is looked for wherever a period can begin, and a period does not hold
// what comes exactly one period after its first attempt.
func TestPeak(t *testing.T) {
	for _, test := range []struct {
		name    string
		at      []int64
		allowed int
		within  time.Duration
	}{
		{"none", nil, 0, 0},
		{"one", []int64{5}, 1, 0},
		{"just within a period", []int64{0, 999}, 2, 999 * time.Millisecond},
		{"just not", []int64{0, 1000}, 1, 0},
		{"in the middle, unordered", []int64{2500, 0, 1400, 1900, 2000}, 3, 600 * time.Millisecond},
	} {
		b := report.Boundary{Period: time.Second}
		for _, at := range test.at {
			b.Events = append(b.Events, report.Event{At: at, Allowed: true}, report.Event{At: at})
		}
		if allowed, within := b.Peak(); allowed != test.allowed || within != test.within {
			t.Errorf("%s: %d within %v, want %d within %v", test.name, allowed, within, test.allowed, test.within)
		}
	}
}
