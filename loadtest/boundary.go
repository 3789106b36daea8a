package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/slotlimit/slotlimit/limiter"
	"github.com/slotlimit/slotlimit/loadtest/report"
)

const (
	// boundaryTries is how often a burst may miss its window: on a real cluster the
	// boundary comes when it comes, and a slow answer can put a burst on its other side.
	boundaryTries = 5

	// minMargin is the least time before a window's end at which a burst begins.
	minMargin = 200 * time.Millisecond

	// maxBoundaryRate bounds a burst to what fits into a small part of a window.
	maxBoundaryRate = 20000

	// perAttempt is the time that an attempt of a burst may take, all workers together.
	perAttempt = 200 * time.Microsecond
)

// errMissed says that a burst was not in the window that it was meant for.
var errMissed = errors.New("the bursts missed the boundary: the cluster answers too slowly for the period")

// boundary shows the burst at the boundary of two windows.
func (p *program) boundary(ctx context.Context, o options) (status int, err error) {
	t, err := open(ctx, o)
	if err != nil {
		return exitUsage, err
	}
	defer func() { err = errors.Join(err, t.close()) }()
	lim, err := p.limiter(setup{target: t, limit: o.limit, prefix: o.prefix, grace: o.grace})
	if err != nil {
		return exitUsage, err
	}
	found := report.Boundary{Limit: o.limit.String(), Rate: o.limit.Rate, Period: o.limit.Period}
	for try := 1; ; try++ {
		d := bursts{lim: lim, wait: t.wait, limit: o.limit, workers: o.workers, user: fmt.Sprintf("boundary-%d", try)}
		found.Window, found.Events, err = d.aroundBoundary(ctx)
		if err == nil && found.Late() {
			err = errMissed
		}
		if err == nil {
			break
		}
		if !errors.Is(err, errMissed) || try == boundaryTries {
			return exitUsage, err
		}
	}
	if err := report.Timeline(p.stdout, found); err != nil {
		return exitUsage, err
	}
	if passed, _ := found.Peak(); int64(passed) != 2*o.limit.Rate {
		return exitFailed, fmt.Errorf("%d passed within one period, a fixed window lets pass %d", passed, 2*o.limit.Rate)
	}
	return exitOK, nil
}

// wait lets time pass: on the cluster inside the process by moving all clocks.
func (t *target) wait(ctx context.Context, d time.Duration) error {
	if t.inner != nil {
		t.inner.Advance(d)
		return ctx.Err()
	}
	pause(ctx, d)
	return ctx.Err()
}

// bursts drives one user's attempts around a boundary.
type bursts struct {
	lim     limiter.Allower
	wait    func(context.Context, time.Duration) error
	limit   limiter.Limit
	workers int
	user    string
}

// aroundBoundary sends a burst shortly before the end of a window and another right
// after it, and returns the window that ended. All times are the node's: each
// decision tells how far the window's end is.
func (b bursts) aroundBoundary(ctx context.Context) (int64, []report.Event, error) {
	// Short, so that the picture shows a boundary, and long enough for a burst.
	margin := max(b.limit.Period/60, minMargin, time.Duration(b.limit.Rate)*perAttempt)
	margin = min(margin, b.limit.Period/2)
	now, err := b.lim.AllowN(ctx, b.user, 0)
	if err == nil && now.ResetAfter < margin { // too late for this window
		if err = b.wait(ctx, now.ResetAfter); err == nil {
			now, err = b.lim.AllowN(ctx, b.user, 0)
		}
	}
	if err != nil {
		return 0, nil, err
	}
	if err := b.wait(ctx, now.ResetAfter-margin); err != nil {
		return 0, nil, err
	}
	before, left, err := b.burst(ctx, now.Window)
	if err != nil {
		return 0, nil, err
	}
	if err := b.wait(ctx, left); err != nil {
		return 0, nil, err
	}
	after, _, err := b.burst(ctx, now.Window+1)
	return now.Window, append(before, after...), err
}

// burst sends a quarter more than the rate allows, all in one window, and returns how
// much of the window is left.
func (b bursts) burst(ctx context.Context, window int64) ([]report.Event, time.Duration, error) {
	events := make([]report.Event, b.limit.Rate+(b.limit.Rate+3)/4)
	left := make([]time.Duration, len(events))
	end := (window + 1) * b.limit.Period.Milliseconds()
	var next atomic.Int64
	var workers errgroup.Group
	for range b.workers {
		workers.Go(func() error {
			for {
				i := next.Add(1) - 1
				if i >= int64(len(events)) {
					return nil
				}
				r, err := b.lim.AllowN(ctx, b.user, 1)
				if err != nil {
					return err
				}
				if r.Window != window {
					return errMissed
				}
				left[i] = r.ResetAfter
				events[i] = report.Event{At: end - r.ResetAfter.Milliseconds(), Allowed: r.Allowed}
			}
		})
	}
	if err := workers.Wait(); err != nil {
		return nil, 0, err
	}
	return events, left[len(left)-1], nil
}
