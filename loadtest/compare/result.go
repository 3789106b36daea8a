package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"slices"
)

// A result is what a run came to.
type result struct {
	OK       bool              `json:"ok"` // this limiter counted right, if it was there
	CutShort bool              `json:"cut_short"`
	Cluster  string            `json:"cluster"`
	Client   string            `json:"client"`
	Modules  map[string]string `json:"modules"` // versions, by limiter
	Options  settings          `json:"options"`

	// Own is the client's CPU for a decision that costs nothing, in µs, by workload: what this program
	// adds to every limiter's.
	Own map[string]float64 `json:"own_client_cpu_us,omitempty"`

	Findings []finding     `json:"findings,omitempty"`
	Rows     []summary     `json:"rows,omitempty"`
	Samples  []sample      `json:"samples,omitempty"`
	Pauses   []pauseSample `json:"pauses,omitempty"`

	rows       []row
	contenders []contender
}

// settings are the options that a result depends on.
type settings struct {
	Limiters []string `json:"limiters"`
	Rounds   int      `json:"rounds"`
	Seconds  float64  `json:"seconds"` // of each measurement
	Pool     int      `json:"pool"`    // 0: each client's default
	Seed     uint64   `json:"seed"`
}

// A summary is all rounds of one limiter at one row. Numbers are medians over the rounds.
type summary struct {
	Workload   string `json:"workload"`
	Users      int    `json:"users"`
	Goroutines int    `json:"goroutines"`
	Limiter    string `json:"limiter"`
	Rounds     int    `json:"rounds"`

	Rate    float64 `json:"decisions_per_second"`
	RateMin float64 `json:"decisions_per_second_min"`
	RateMax float64 `json:"decisions_per_second_max"`

	// Of ratios, each is formed within a round; 0 where there is nothing to compare with.
	ToYardstick float64 `json:"rate_to_redis_rate"`
	ToCeiling   float64 `json:"rate_to_pipeline"`
	ToBare      float64 `json:"p50_to_evalsha"`

	P50       float64 `json:"p50_us"`
	P99       float64 `json:"p99_us"`
	P999      float64 `json:"p999_us"`
	ClientCPU float64 `json:"client_cpu_us"`
	ServerCPU float64 `json:"server_cpu_us"`
	Allocs    float64 `json:"allocations"`

	Errors int64  `json:"errors"` // of all rounds
	Error  string `json:"error,omitempty"`
	Wrong  string `json:"wrong,omitempty"`
}

func (t *trial) result() result {
	r := result{
		CutShort: t.cut, Cluster: t.target.text, Client: client(t.pool), Modules: versions(t.contenders),
		Options:  settings{t.limiters, t.rounds, t.duration.Seconds(), t.pool, t.seed},
		Findings: t.findings, Samples: t.samples, Rows: summarize(t.rows, t.contenders, t.samples),
		Pauses: t.pauses, Own: t.own, rows: t.rows, contenders: t.contenders,
	}
	r.OK = countedRight(r)
	return r
}

// countedRight judges this limiter alone.
func countedRight(r result) bool {
	return !slices.ContainsFunc(r.Findings, func(f finding) bool { return f.Limiter == ours && !f.OK }) &&
		!slices.ContainsFunc(r.Samples, func(s sample) bool { return s.Limiter == ours && s.Wrong != "" }) &&
		!slices.ContainsFunc(r.Pauses, func(s pauseSample) bool { return s.Limiter == ours && s.Wrong != "" })
}

func client(pool int) string {
	text := fmt.Sprintf("%s, %d processors", runtime.Version(), runtime.GOMAXPROCS(0))
	if pool > 0 {
		return fmt.Sprintf("%s, pools of %d connections to a node", text, pool)
	}
	return text + ", each client's default pool"
}

// versions returns where each limiter comes from, with its version.
func versions(all []contender) map[string]string {
	found := map[string]string{}
	info, _ := debug.ReadBuildInfo()
	for _, c := range all {
		module := c.module
		if module == "" {
			module = "github.com/redis/go-redis/v9"
		}
		found[c.name] = module
		if info == nil {
			continue
		}
		for _, d := range info.Deps {
			if d.Path == module && d.Replace == nil {
				found[c.name] = module + " " + d.Version
			}
		}
	}
	return found
}

// summarize sums the samples up: rows in their order, and in each the contenders in theirs.
func summarize(rows []row, all []contender, samples []sample) []summary {
	var sums []summary
	for _, r := range rows {
		for _, c := range all {
			mine := pick(samples, c.name, r)
			if len(mine) == 0 {
				continue // cut short
			}
			s := sum(mine)
			s.ToYardstick = ratio(mine, pick(samples, yardstick, r), sample.rate)
			s.ToCeiling = ratio(mine, pick(samples, ceiling, r), sample.rate)
			s.ToBare = ratio(mine, pick(samples, bare, r), func(s sample) float64 { return s.P50 })
			sums = append(sums, s)
		}
	}
	return sums
}

// pick returns the samples of one limiter at one row.
func pick(samples []sample, limiter string, r row) []sample {
	var some []sample
	for _, s := range samples {
		if s.Limiter == limiter && s.row() == r {
			some = append(some, s)
		}
	}
	return some
}

// sum sums up the samples of one limiter at one row, without ratios.
func sum(mine []sample) summary {
	first := mine[0]
	of := func(value func(sample) float64) []float64 {
		values := make([]float64, len(mine))
		for i, s := range mine {
			values[i] = value(s)
		}
		return values
	}
	rates := of(sample.rate)
	s := summary{
		Workload: first.Workload, Users: first.Users, Goroutines: first.Goroutines, Limiter: first.Limiter, Rounds: len(mine),
		Rate: median(rates), RateMin: slices.Min(rates), RateMax: slices.Max(rates),
		P50:       median(of(func(s sample) float64 { return s.P50 })),
		P99:       median(of(func(s sample) float64 { return s.P99 })),
		P999:      median(of(func(s sample) float64 { return s.P999 })),
		ClientCPU: median(of(func(s sample) float64 { return s.ClientCPU })),
		ServerCPU: median(of(func(s sample) float64 { return s.ServerCPU })),
		Allocs:    median(of(func(s sample) float64 { return s.Allocs })),
	}
	for _, m := range mine {
		s.Errors += m.Errors
		s.Error = cmp.Or(s.Error, m.Error)
		s.Wrong = cmp.Or(s.Wrong, m.Wrong)
	}
	return s
}

// ratio is the median of the ratios of two limiters' values in the rounds that both were
// measured in: what changes from round to round hits both. It is 0 if there is none.
func ratio(mine, theirs []sample, value func(sample) float64) float64 {
	var all []float64
	for _, m := range mine {
		for _, t := range theirs {
			if m.Round == t.Round && value(t) > 0 {
				all = append(all, value(m)/value(t))
			}
		}
	}
	return median(all)
}

// median is the middle one, or the mean of the two in the middle; 0 of none.
func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	if n == 0 {
		return 0
	}
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// write writes the result to where it was asked for.
func (o outputs) write(stdout io.Writer, r result) error {
	if _, err := io.WriteString(stdout, text(r)); err != nil {
		return err
	}
	if o.json != nil {
		e := json.NewEncoder(o.json)
		e.SetIndent("", "  ")
		if err := errors.Join(o.json.Truncate(0), e.Encode(r)); err != nil {
			return fmt.Errorf("-json: %w", err)
		}
	}
	if o.plot != nil {
		if err := errors.Join(o.plot.Truncate(0), drawPlot(o.plot, r)); err != nil {
			return fmt.Errorf("-plot: %w", err)
		}
	}
	return nil
}
