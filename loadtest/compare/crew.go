package main

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// A crew is goroutines that ask one limiter for decisions, each one call after the other
// without a pause (a closed loop).
type crew struct {
	rival   rival
	names   []string // of the users, by index
	draw    func(goroutine int) source
	workers []*worker

	mu    sync.Mutex              // guards
	times *hdrhistogram.Histogram // of decisions, in units of timeUnit

	stopped atomic.Bool
	running sync.WaitGroup
}

// A worker is one goroutine of a crew, and what it takes down. Only decided may be read
// while the crew runs.
type worker struct {
	source   source
	drawn    int64 // users, since the crew was made
	picked   []int // the users of one call
	users    []string
	verdicts []verdict

	decided atomic.Int64 // decisions
	denied  int64
	failed  []int32 // the users of attempts that got an error instead
	err     error   // the first one

	// The newest calls, until the crew takes them over: with a histogram for each of a
	// thousand goroutines the processor's cache would hold little else, and with one for all
	// each call would wait for it.
	calls []timing
}

// A timing is how long a call took, in units of timeUnit, and for how many decisions.
type timing struct{ took, decisions int64 }

// notebook is how many timings a goroutine keeps to itself.
const notebook = 32

// Response times are taken down in units of 100 ns, up to a minute.
const (
	timeUnit = 100 * time.Nanosecond
	maxTime  = int64(time.Minute / timeUnit)
)

// newCrew makes a crew that does not run yet. Each call is for so many decisions; draw
// makes the source of a goroutine, and the same one when it is called again.
func newCrew(r rival, names []string, goroutines, each int, draw func(goroutine int) source) *crew {
	c := &crew{rival: r, names: names, draw: draw, times: hdrhistogram.New(1, maxTime, 3)}
	for i := range goroutines {
		c.workers = append(c.workers, &worker{
			source:   draw(i),
			picked:   make([]int, each),
			users:    make([]string, each),
			verdicts: make([]verdict, each),
			calls:    make([]timing, 0, notebook),
		})
	}
	return c
}

// start lets the goroutines begin.
func (c *crew) start(ctx context.Context) {
	c.stopped.Store(false)
	for _, w := range c.workers {
		c.running.Go(func() { c.work(ctx, w) })
	}
}

// stop returns when the last call has returned: every decision that was asked for is in the
// books.
func (c *crew) stop() {
	c.stopped.Store(true)
	c.running.Wait()
}

// run lets the crew work for so long, or until ctx ends, and returns how long it took to
// the end of the last call.
func (c *crew) run(ctx context.Context, d time.Duration) time.Duration {
	began := time.Now()
	c.start(ctx)
	sleep(ctx, d)
	c.stop()
	return time.Since(began)
}

func (c *crew) work(ctx context.Context, w *worker) {
	// The context of a service's call is that of a request: it can be cancelled, and no other
	// call has it. All with one context would meet at its lock. That ctx ends is no reason to break
	// off calls: then nobody could tell what was counted.
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	// A call is timed from the end of the one before, with one look at the clock: that is
	// most of what the measuring costs, and choosing a user and entering a time take little
	// beside a call.
	began, last := time.Now(), time.Duration(0)
	for !c.stopped.Load() {
		for i := range w.picked {
			w.picked[i] = w.source.next()
			w.users[i] = c.names[w.picked[i]]
		}
		w.drawn += int64(len(w.picked))
		c.rival.decide(ctx, w.users, w.verdicts)
		now := time.Since(began)
		w.take(now - last)
		last = now
		if len(w.calls) == notebook {
			c.collect(w)
			last = time.Since(began)
		}
	}
	c.collect(w)
}

// take takes down what became of a call.
func (w *worker) take(took time.Duration) {
	decided := int64(0)
	for i, v := range w.verdicts {
		if v.err != nil {
			w.failed = append(w.failed, int32(w.picked[i]))
			if w.err == nil {
				w.err = v.err
			}
			continue
		}
		decided++
		if !v.allowed {
			w.denied++
		}
	}
	if decided > 0 {
		w.decided.Add(decided)
		w.calls = append(w.calls, timing{min(int64(took/timeUnit), maxTime), decided})
	}
}

// collect takes over the timings of a goroutine.
func (c *crew) collect(w *worker) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, t := range w.calls {
		_ = c.times.RecordValues(t.took, t.decisions) // it is in range
	}
	w.calls = w.calls[:0]
}

// A tally is what a crew has done since it was made.
type tally struct{ drawn, decided, denied, failed int64 }

func (t tally) minus(u tally) tally {
	return tally{t.drawn - u.drawn, t.decided - u.decided, t.denied - u.denied, t.failed - u.failed}
}

// tally may be called while the crew does not run.
func (c *crew) tally() tally {
	var t tally
	for _, w := range c.workers {
		t.drawn += w.drawn
		t.decided += w.decided.Load()
		t.denied += w.denied
		t.failed += int64(len(w.failed))
	}
	return t
}

// decided may be called at any time.
func (c *crew) decided() int64 {
	n := int64(0)
	for _, w := range c.workers {
		n += w.decided.Load()
	}
	return n
}

// forget drops the response times so far, those of the lead-in.
func (c *crew) forget() {
	c.times.Reset()
}

// err is an error that an attempt got, or nil if none did.
func (c *crew) err() error {
	for _, w := range c.workers {
		if w.err != nil {
			return w.err
		}
	}
	return nil
}

// sleep waits, and reports false if ctx ends before.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
