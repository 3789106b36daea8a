package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/slotlimit/slotlimit/cluster"
	"github.com/slotlimit/slotlimit/keys"
	"github.com/slotlimit/slotlimit/loadtest/faults"
)

// A pauseSample is one primary's part in one pause.
type pauseSample struct {
	Round      int     `json:"round"`
	Limiter    string  `json:"limiter"`
	Primary    string  `json:"primary"`
	Goroutines int     `json:"goroutines"`
	Paused     bool    `json:"paused"`
	Before     float64 `json:"decisions_per_second_before"`
	Alone      float64 `json:"decisions_per_second_alone"` // while the one to be paused has no load
	During     float64 `json:"decisions_per_second_during"`
	Errors     int64   `json:"errors"`
	Error      string  `json:"error,omitempty"`
	Wrong      string  `json:"wrong,omitempty"`
}

// kept is what is left of the primary's own rate. A primary that is paused leaves its part of the
// processors to the others, so this is above 1 where they want for nothing else, and hides what
// they lose; keptAlone does not.
func (s pauseSample) kept() float64 { return s.During / s.Before }

// keptAlone is what is left of the rate without any load on the one that is paused.
func (s pauseSample) keptAlone() float64 { return s.During / s.Alone }

// pause stops one primary in each round, and measures the others.
func (t *trial) pause(ctx context.Context) error {
	for round := range t.rounds {
		for _, c := range t.contenders {
			t.program.progress("round %d of %d: %s", round+1, t.rounds, c.name)
			samples, err := t.hang(ctx, round, c)
			if ctx.Err() != nil {
				return errors.Join(errInterrupted, err)
			}
			if err != nil {
				return err
			}
			t.pauses = append(t.pauses, samples...)
		}
	}
	return nil
}

// pauseMargin is how much longer than the measuring a primary would be stopped, if the end of
// the measuring did not end that.
const pauseMargin = 10 * time.Second

// hang stops a primary while every primary has a crew of its own, and takes samples of all.
func (t *trial) hang(ctx context.Context, round int, c contender) ([]pauseSample, error) {
	l := t.ledgers[c.name]
	t.touch(ctx, l, len(l.names))
	paused := make(chan struct{})
	var once sync.Once
	plan, err := faults.Prepare(ctx, faults.Config{
		Client: t.target.owner,
		Faults: []faults.Fault{{Name: "pause", For: t.duration + pauseMargin}},
		Seed:   uint64(round),
		Tell:   func(time.Time, string) { once.Do(func() { close(paused) }) },
	})
	if err != nil {
		return nil, err
	}
	defer plan.Close()
	shards := plan.Shards()
	crews, err := t.crews(l, shards, round)
	if err != nil {
		return nil, err
	}
	m, err := t.paces(ctx, plan, crews, round%len(shards), paused)
	if err != nil {
		return nil, err
	}
	wrong, err := t.settle(ctx, l, crews)
	samples := make([]pauseSample, len(shards))
	for i, s := range shards {
		samples[i] = pauseSample{
			Round: round, Limiter: c.name, Primary: s.Name, Goroutines: t.goroutines[0], Paused: i == round%len(shards),
			Before: m.before[i], Alone: m.alone[i], During: m.during[i], Errors: crews[i].tally().failed, Wrong: wrong,
		}
		if err := crews[i].err(); err != nil {
			samples[i].Error = err.Error()
		}
	}
	return samples, err
}

// paces are rates in decisions a second, by crew.
type paces struct{ before, alone, during []float64 }

// paces lets the crews run and stops the primary of one of them. The channel is closed when it
// is stopped. The cluster is whole again, and no crew runs, when it returns.
func (t *trial) paces(ctx context.Context, plan *faults.Plan, crews []*crew, victim int, paused <-chan struct{}) (m paces, err error) {
	for _, c := range crews {
		c.start(ctx)
	}
	sleep(ctx, t.duration/lead)
	m.before = pace(ctx, crews, t.duration)
	crews[victim].stop()
	m.alone = pace(ctx, crews, t.duration)
	crews[victim].start(ctx)
	sleep(ctx, t.duration/lead)

	hold, release := context.WithCancel(context.WithoutCancel(ctx))
	var made sync.WaitGroup
	made.Go(func() { plan.Run(hold, time.Now(), faults.NewRecord(time.Now(), plan.Shards())) })
	<-paused // or it could not be
	m.during = pace(ctx, crews, t.duration)
	release()
	made.Wait()
	for _, c := range crews {
		c.stop()
	}
	deed := plan.Deeds()[0]
	_, err = plan.Restore(context.WithoutCancel(ctx))
	if name := plan.Shards()[victim].Name; err == nil && deed.Err == nil && deed.Shard != name {
		err = fmt.Errorf("%s was paused, and not %s", deed.Shard, name)
	}
	return m, errors.Join(deed.Err, err)
}

// crews makes a crew for each shard, of users that the shard owns.
func (t *trial) crews(l *ledger, shards []faults.Shard, round int) ([]*crew, error) {
	users := make([][]int, len(shards))
	window := windows(l.quota, time.Now(), time.Now())
	for i, name := range l.names {
		slot := keys.Slot(l.contender.keys(name, l.quota, window)[0])
		for j, s := range shards {
			if slices.ContainsFunc(s.Slots, func(r faults.SlotRange) bool { return r.First <= slot && slot <= r.Last }) {
				users[j] = append(users[j], i)
			}
		}
	}
	crews := make([]*crew, len(shards))
	for j, own := range users {
		if len(own) == 0 {
			return nil, fmt.Errorf("none of %d users is on %s", len(l.names), shards[j].Name)
		}
		draw := func(goroutine int) source {
			seed := t.seed + uint64(round)<<32 + uint64(j)<<16
			return some{workload{"uniform", len(own)}.source(seed, goroutine), own}
		}
		crews[j] = newCrew(l.rival, l.names, l.contender.workers(t.goroutines[0]), l.contender.each(), draw)
	}
	return crews, nil
}

// some is a source of some of the users.
type some struct {
	source
	users []int
}

func (s some) next() int { return s.users[s.source.next()] }

// pace returns the decisions a second of each crew for so long.
func pace(ctx context.Context, crews []*crew, d time.Duration) []float64 {
	rates := make([]float64, len(crews))
	began := time.Now()
	for i, c := range crews {
		rates[i] = -float64(c.decided())
	}
	sleep(ctx, d)
	took := time.Since(began).Seconds()
	for i, c := range crews {
		rates[i] = (rates[i] + float64(c.decided())) / took
	}
	return rates
}

// settle enters what the crews did, and audits it. What a promoted replica lacks is no fault of a
// limiter.
func (t *trial) settle(ctx context.Context, l *ledger, crews []*crew) (wrong string, err error) {
	for _, crew := range crews {
		l.enter(crew)
	}
	now, err := t.target.owner.Topology(ctx)
	if err != nil {
		return "", err
	}
	promoted := slices.ContainsFunc(now.Shards, func(s cluster.Shard) bool {
		return !slices.Contains(t.target.nodes, s.Primary.Addr)
	})
	return l.audit(ctx, t.target, promoted)
}
