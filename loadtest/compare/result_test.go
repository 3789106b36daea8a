package main

import (
	"math"
	"testing"
)

func TestMedian(t *testing.T) {
	for _, test := range []struct {
		values []float64
		want   float64
	}{{nil, 0}, {[]float64{3}, 3}, {[]float64{9, 1}, 5}, {[]float64{7, 1, 2}, 2}, {[]float64{4, 1, 3, 2}, 2.5}} {
		if got := median(test.values); got != test.want {
			t.Errorf("median of %v is %v, want %v", test.values, got, test.want)
		}
	}
}

// at makes a sample of one second of one hot user and 64 goroutines.
func at(round int, limiter string, decisions int64, p50 float64) sample {
	return sample{Round: round, Workload: "hot", Users: 1, Goroutines: 64, Limiter: limiter, Decisions: decisions, Seconds: 1, P50: p50}
}

// The machine is three times as fast in the second round, and the ratios do not notice: they are
// 10 and 30. The ratio of the medians would be 12.5, and across the rounds anything from 3 to 90.
func TestRatiosWithinARound(t *testing.T) {
	samples := []sample{
		at(0, ours, 1000, 50), at(0, yardstick, 100, 80), at(0, ceiling, 2000, 80), at(0, bare, 90, 40),
		at(1, ours, 9000, 20), at(1, yardstick, 300, 30), at(1, ceiling, 6000, 30), at(1, bare, 270, 16),
		at(2, ours, 2500, 30), // cut short: nothing to compare with
	}
	rows := []row{{workload{"hot", 1}, 64}}
	got := summarize(rows, contenders, samples)
	if len(got) != 4 || got[0].Limiter != ours || got[1].Limiter != yardstick || got[2].Limiter != bare || got[3].Limiter != ceiling {
		t.Fatalf("%+v", got)
	}
	s := got[0]
	if s.Rate != 2500 || s.RateMin != 1000 || s.RateMax != 9000 || s.Rounds != 3 || s.P50 != 30 {
		t.Errorf("medians: %+v", s)
	}
	if s.ToYardstick != 20 || s.ToCeiling != 1 || s.ToBare != 1.25 {
		t.Errorf("ratios: %v, %v, %v, want 20, 1, 1.25", s.ToYardstick, s.ToCeiling, s.ToBare)
	}
	if got[1].ToYardstick != 1 {
		t.Errorf("its ratio to itself is %v", got[1].ToYardstick)
	}
}

func TestRatioWithoutOther(t *testing.T) {
	mine := []sample{at(0, ours, 10, 1)}
	for _, theirs := range [][]sample{nil, {at(1, bare, 10, 1)}, {at(0, bare, 0, 0)}} {
		if got := ratio(mine, theirs, sample.rate); got != 0 {
			t.Errorf("ratio to %v is %v, want 0", theirs, got)
		}
	}
}

// What got an error is no decision: a limiter that fails at once is slow.
func TestErrorsAreNoDecisions(t *testing.T) {
	s := sum([]sample{{Decisions: 10, Errors: 1e6, Error: "no", Seconds: 2}, {Decisions: 30, Errors: 5, Seconds: 2}})
	if s.Rate != 10 || s.Errors != 1e6+5 || s.Error != "no" {
		t.Errorf("%+v", s)
	}
}

func TestCosts(t *testing.T) {
	s := sample{Decisions: 1000}
	s.costs(cost{client: 1e6, clientOK: true, server: 5e6, serverOK: true, mallocs: 100}, cost{client: 3e6, clientOK: true, server: 8e6, serverOK: true, mallocs: 2600})
	if s.ClientCPU != 2 || s.ServerCPU != 3 || s.Allocs != 2.5 {
		t.Errorf("%+v", s)
	}
	s = sample{Decisions: 1000}
	s.costs(cost{client: 1e6, clientOK: true}, cost{client: 3e6, server: 9e6, serverOK: true})
	if s.ClientCPU != 0 || s.ServerCPU != 0 {
		t.Errorf("nobody told, and it says %+v", s)
	}
	s = sample{}
	s.costs(cost{clientOK: true, serverOK: true}, cost{client: 1, clientOK: true, serverOK: true, mallocs: 1})
	if s != (sample{}) {
		t.Errorf("without decisions it says %+v", s)
	}
}

// The exit status is about this limiter alone.
func TestCountedRight(t *testing.T) {
	wrong := at(0, yardstick, 1, 1)
	wrong.Wrong = "lost"
	hung := pauseSample{Limiter: yardstick, Wrong: "lost"}
	others := result{
		Findings: []finding{{Limiter: yardstick}, {Limiter: ours, OK: true}}, Samples: []sample{wrong}, Pauses: []pauseSample{hung},
	}
	if !countedRight(others) {
		t.Error("another limiter's wrong counts are held against this one")
	}
	if countedRight(result{Findings: []finding{{Limiter: ours, OK: true}, {Limiter: ours}}}) {
		t.Error("a finding does not count")
	}
	wrong.Limiter, hung.Limiter = ours, ours
	if countedRight(result{Samples: []sample{wrong}}) || countedRight(result{Pauses: []pauseSample{hung}}) {
		t.Error("a wrong count does not count")
	}
}

// 10 µs with few users and 11 with many are 10 % more, whatever the machine does from
// round to round.
func TestGrowth(t *testing.T) {
	few, many := row{workload{"uniform", 1000}, 8}, row{workload{"uniform", 1000000}, 8}
	var samples []sample
	for round, speed := range []int64{1, 3, 2} {
		for _, s := range []sample{{Users: 1000, Decisions: 110_000}, {Users: 1000000, Decisions: 100_000}} {
			s.Round, s.Workload, s.Goroutines, s.Limiter, s.Seconds = round, "uniform", 8, ours, 1
			s.Decisions *= speed
			samples = append(samples, s)
		}
	}
	got := growths([]row{few, many, {workload{"zipf", 5}, 8}}, contenders, samples)
	if len(got) != 1 || got[0].limiter != ours || got[0].many != many || got[0].few != 1000 || got[0].each != 5 || math.Abs(got[0].ratio-1.1) > 1e-9 {
		t.Errorf("%+v", got)
	}
}
