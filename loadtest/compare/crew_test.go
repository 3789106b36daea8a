package main

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// Two goroutines, whose calls take 1 ms for 5 decisions, make 50 of them each in 10 ms, and a
// pipeline's time is that of each decision in it.
func TestCrewTakesTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrew(slow{t}, users(1), 2, 5, func(int) source { return hot{} })
		took := c.run(t.Context(), 10*time.Millisecond-time.Nanosecond)
		got, times := c.tally(), c.times
		if took != 10*time.Millisecond || got != (tally{drawn: 100, decided: 80, denied: 20, failed: 20}) || c.decided() != 80 {
			t.Errorf("%+v in %v", got, took)
		}
		// Of three digits.
		least, most := int64(time.Millisecond/timeUnit)*999/1000, int64(time.Millisecond/timeUnit)*1001/1000
		if times.TotalCount() != 80 || times.Min() < least || times.Max() > most {
			t.Errorf("%d times, from %d to %d", times.TotalCount(), times.Min(), times.Max())
		}
		if c.err() != errNo {
			t.Error(c.err())
		}
		c.forget()
		if c.times.TotalCount() != 0 {
			t.Error("the lead-in's times are kept")
		}
	})
}

// slow takes 1 ms for a call, and denies one attempt and fails at another.
type slow struct{ t *testing.T }

func (s slow) decide(ctx context.Context, _ []string, verdicts []verdict) {
	if ctx.Done() == nil {
		s.t.Error("a call's context cannot be cancelled, as a request's can")
	}
	time.Sleep(time.Millisecond)
	verdicts[0], verdicts[1] = verdict{err: errNo}, verdict{}
	for i := range verdicts[2:] {
		verdicts[2+i] = verdict{allowed: true}
	}
}

// The end of the context ends the run, and no call is broken off.
func TestCrewEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second/2)
		defer cancel()
		r := single(func(ctx context.Context, _ string) (bool, error) {
			time.Sleep(time.Second)
			return true, ctx.Err()
		})
		c := newCrew(r, users(1), 3, 1, func(int) source { return hot{} })
		if took := c.run(ctx, time.Hour); took != 2*time.Second {
			t.Errorf("it took %v", took)
		}
		if got := c.tally(); got != (tally{drawn: 6, decided: 6}) {
			t.Errorf("%+v", got)
		}
	})
}

// Response times above the longest that is kept are kept as that.
func TestCrewLongTime(t *testing.T) {
	c := newCrew(slow{t}, users(1), 1, 1, func(int) source { return hot{} })
	w := c.workers[0]
	w.verdicts[0].allowed = true
	w.take(time.Hour)
	c.collect(w)
	if c.times.TotalCount() != 1 || c.times.Max() < maxTime {
		t.Errorf("%d times, the longest %d", c.times.TotalCount(), c.times.Max())
	}
}
