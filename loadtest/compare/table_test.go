package main

import (
	"regexp"
	"strings"
	"testing"
)

func TestNumbers(t *testing.T) {
	for x, want := range map[float64]string{0: "-", 0.041: "0.04", 1.234: "1.23", 12.34: "12.3", 123.4: "123", 12345: "12345"} {
		if got := number(x); got != want {
			t.Errorf("%v is %q, want %q", x, got, want)
		}
	}
	for us, want := range map[float64]string{0: "-", 66.04: "66.0 us", 1234: "1.23 ms", 2.5e6: "2.50 s"} {
		if got := duration(us); got != want {
			t.Errorf("%v us is %q, want %q", us, got, want)
		}
	}
}

// cells are the words of the table's rows.
func cells(text string) []string {
	var rows []string
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "│") {
			rows = append(rows, strings.Join(regexp.MustCompile(`[^│\s]+( [^│\s]+)*`).FindAllString(line, -1), "|"))
		}
	}
	return rows
}

func TestWorkloadTable(t *testing.T) {
	w := workload{"hot", 1}
	rows := cells(workloadTable(w, 0.15, []summary{
		{Workload: "hot", Users: 1, Goroutines: 1, Limiter: ours, Rate: 14000, RateMin: 13000, RateMax: 15000, ToYardstick: 1.5, ToCeiling: 0.06, ToBare: 1.04,
			P50: 66, P99: 120, P999: 1500, ClientCPU: 30, ServerCPU: 20, Allocs: 3},
		{Workload: "hot", Users: 1, Goroutines: 64, Limiter: bare, Rate: 20000, RateMin: 20000, RateMax: 20000, Errors: 3, Wrong: "lost"},
		{Workload: "zipf", Users: 1, Goroutines: 64, Limiter: bare},
	}))
	want := []string{
		"goroutines|limiter|decisions/s|min..max|x redis_rate|x ceiling|p50|p99|p99.9|p50 x evalsha|client us|servers us|allocs|errors|counted",
		"1|slotlimit|14000|13000..15000|1.50|0.06|66.0 us|120 us|1.50 ms|1.04|30.0|20.0|3.00|0|right",
		"64|evalsha|20000|20000..20000|-|-|-|-|-|-|-|-|-|3|WRONG",
	}
	if len(rows) != 3 || rows[0] != want[0] || rows[1] != want[1] || rows[2] != want[2] {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(rows, "\n"), strings.Join(want, "\n"))
	}
	if got := workloadTable(w, 0, nil); got != "" {
		t.Errorf("of nothing: %s", got)
	}
}

// A growth and a pause are in the text, with their signs.
func TestTextHasAllParts(t *testing.T) {
	r := result{
		contenders: []contender{contenderSlotlimit},
		Pauses: []pauseSample{
			{Limiter: ours, Primary: "a", Paused: true, Before: 100, Errors: 2, Error: "time-out"},
			{Limiter: ours, Primary: "b", Before: 100, Alone: 120, During: 114},
			{Limiter: ours, Primary: "c", Before: 100, Alone: 120, During: 108},
		},
	}
	got := text(r)
	for _, want := range []string{
		"kept 111.0 % of their rate before (median; at least 108.0 %), 92.5 % of that alone (at least 90.0 %)",
		"slotlimit   counted right", "round 1, a: 2 attempts got no decision, but such as: time-out",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	rows := cells(growthTable([]growth{{ours, row{workload{"uniform", 50}, 8}, 5, 11, 1.1}, {ours, row{workload{"uniform", 60}, 8}, 5, 9, 0.9}, {ours, row{workload{"uniform", 60}, 9}, 5, 9, 0}}))
	if want := "slotlimit|8|50 users, uniform|11.0|+10.0 %|5"; len(rows) != 4 || rows[1] != want {
		t.Errorf("%q, want %q", rows, want)
	} else if !strings.Contains(rows[2], "-10.0 %") || !strings.Contains(rows[3], "|-|") {
		t.Errorf("%q", rows)
	}
}

// The verdict on each limiter, and what it rests on.
func TestJudgement(t *testing.T) {
	r := result{
		Findings: []finding{{ours, "limit", true, "fine"}, {ours, "odd users", false, "user lost"}, {bare, "limit", true, "fine too"}},
		Samples: []sample{
			at(0, ours, 10, 1), {Round: 1, Workload: "hot", Users: 1, Goroutines: 2, Limiter: ours, Wrong: "stored 9"},
			at(0, bare, 10, 1), {Round: 1, Workload: "hot", Users: 1, Goroutines: 2, Limiter: bare, Decisions: 5, Errors: 4, Error: "no"},
		},
	}
	want := `slotlimit   COUNTED WRONG
            odd users: user lost
            round 2, one hot user, 2 goroutines: stored 9
`
	if got := judge(r, contenderSlotlimit).String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	want = `evalsha     counted right
            limit: fine too
            measured: 15 decisions, and each user's counter as it should be after every measurement
            round 2, one hot user, 2 goroutines: 4 attempts got no decision, but such as: no
`
	if got := judge(r, contenderEvalsha).String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	lines := shortened([]string{"a", "b", "c", "d", "e"})
	if strings.Join(lines, ",") != "a,b,c,and in 2 more measurements" {
		t.Errorf("%q", lines)
	}
}
