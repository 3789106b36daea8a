package main

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"
)

// A row is what all limiters are measured at, one after the other, in each round.
type row struct {
	workload   workload
	goroutines int
}

func (r row) String() string { return fmt.Sprintf("%v, %d goroutines", r.workload, r.goroutines) }

// A sample is one measurement of one limiter. Times are in µs; of those for a decision that
// are 0, nobody told.
type sample struct {
	Round      int    `json:"round"`
	Workload   string `json:"workload"`
	Users      int    `json:"users"`
	Goroutines int    `json:"goroutines"`
	Limiter    string `json:"limiter"`

	Decisions int64   `json:"decisions"`
	Denied    int64   `json:"denied"`
	Errors    int64   `json:"errors"` // attempts that got no decision
	Error     string  `json:"error,omitempty"`
	Seconds   float64 `json:"seconds"`
	Seen      int     `json:"users_seen"` // different ones, the lead-in included

	P50  float64 `json:"p50_us"`
	P99  float64 `json:"p99_us"`
	P999 float64 `json:"p999_us"`

	ClientCPU float64 `json:"client_cpu_us"` // for a decision
	ServerCPU float64 `json:"server_cpu_us"` // likewise, of all primaries together
	Allocs    float64 `json:"allocations"`   // likewise, of this process

	Wrong string `json:"wrong,omitempty"` // with the counts
}

func (s sample) row() row { return row{workload{s.Workload, s.Users}, s.Goroutines} }

// rate is in decisions a second. Errors are none.
func (s sample) rate() float64 { return float64(s.Decisions) / s.Seconds }

// A cost is what has been used up to a moment.
type cost struct {
	client, server     time.Duration
	clientOK, serverOK bool
	mallocs            uint64
}

// spent asks the servers first, before the measuring, and last, after it.
func (t *trial) spent(ctx context.Context, after bool) (c cost) {
	ctx = context.WithoutCancel(ctx)
	if !after {
		c.server, c.serverOK = t.target.cpu(ctx)
	} else {
		c.client, c.clientOK = ownCPU()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	c.mallocs = m.Mallocs
	if after {
		c.server, c.serverOK = t.target.cpu(ctx)
	} else {
		c.client, c.clientOK = ownCPU()
	}
	return c
}

// lead is the part of a measurement's duration that the lead-in takes before it:
// connections are opened, and queues filled.
const lead = 10

// measure measures one limiter once. An error means that there is nothing to measure, or
// that the measurement contradicts itself.
func (t *trial) measure(ctx context.Context, round, index int, c contender) (sample, error) {
	r := t.rows[index]
	l := t.ledgers[c.name]
	t.touch(ctx, l, r.workload.users)
	seed := t.seed + uint64(round)<<32 + uint64(index)<<16
	crew := newCrew(l.rival, l.names, c.workers(r.goroutines), c.each(), func(goroutine int) source {
		return r.workload.source(seed, goroutine)
	})
	runtime.GC() // the garbage of others is not this limiter's
	crew.run(ctx, t.duration/lead)
	crew.forget()
	before, start := crew.tally(), t.spent(ctx, false)
	took := crew.run(ctx, t.duration)
	end, done := t.spent(ctx, true), crew.tally().minus(before)

	s := sample{
		Round: round, Workload: r.workload.kind, Users: r.workload.users, Goroutines: r.goroutines, Limiter: c.name,
		Decisions: done.decided, Denied: done.denied, Errors: done.failed, Seconds: took.Seconds(),
	}
	if err := crew.err(); err != nil {
		s.Error = err.Error()
	}
	s.times(crew)
	s.costs(start, end)
	s.Seen = l.enter(crew)
	if done.drawn != done.decided+done.failed || s.Seen > r.workload.users {
		return s, fmt.Errorf("%s, %v: %d attempts for %d users of %d are not %d decisions and %d errors",
			c.name, r, done.drawn, s.Seen, r.workload.users, done.decided, done.failed)
	}
	var err error
	if s.Wrong, err = l.audit(context.WithoutCancel(ctx), t.target, false); err != nil {
		return s, err
	}
	if s.Denied > 0 && s.Wrong == "" {
		s.Wrong = fmt.Sprintf("%d of %d decisions are denials, under a limit that nobody reached", s.Denied, s.Decisions)
	}
	return s, nil
}

// touch lets a ledger ask for each of the first n users.
func (t *trial) touch(ctx context.Context, l *ledger, n int) {
	if err := l.touch(ctx, n); err != nil {
		t.program.progress("%s: asking for each user once: %v", l.contender.name, err)
	}
}

func (s *sample) times(c *crew) {
	const perMicrosecond = float64(time.Microsecond / timeUnit)
	all := c.times
	s.P50 = float64(all.ValueAtQuantile(50)) / perMicrosecond
	s.P99 = float64(all.ValueAtQuantile(99)) / perMicrosecond
	s.P999 = float64(all.ValueAtQuantile(99.9)) / perMicrosecond
}

func (s *sample) costs(start, end cost) {
	if s.Decisions == 0 {
		return
	}
	each := func(d time.Duration) float64 {
		return float64(d) / float64(time.Microsecond) / float64(s.Decisions)
	}
	if start.clientOK && end.clientOK {
		s.ClientCPU = each(end.client - start.client)
	}
	if start.serverOK && end.serverOK {
		s.ServerCPU = each(end.server - start.server)
	}
	s.Allocs = float64(end.mallocs-start.mallocs) / float64(s.Decisions)
}

// ownDuration is how long the measuring itself is measured.
const ownDuration = 50 * time.Millisecond

// measureOwn measures for each workload what is added to every limiter's CPU time: drawing the user, and
// taking down the time.
func (t *trial) measureOwn(ctx context.Context) {
	t.own = map[string]float64{}
	nothing := single(func(context.Context, string) (bool, error) { return true, nil })
	users := make([]string, slices.Max(t.users))
	for _, r := range t.rows {
		crew := newCrew(nothing, users, runtime.GOMAXPROCS(0), 1, func(goroutine int) source {
			return r.workload.source(t.seed, goroutine)
		})
		start, known := ownCPU()
		crew.run(ctx, ownDuration)
		end, _ := ownCPU()
		if n := crew.decided(); known && n > 0 {
			t.own[r.workload.String()] = float64(end-start) / float64(time.Microsecond) / float64(n)
		}
	}
}
