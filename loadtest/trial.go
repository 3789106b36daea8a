package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/slotlimit/slotlimit/cluster"
	"github.com/slotlimit/slotlimit/keys"
	"github.com/slotlimit/slotlimit/limiter"
	"github.com/slotlimit/slotlimit/loadtest/audit"
	"github.com/slotlimit/slotlimit/loadtest/loadgen"
	"github.com/slotlimit/slotlimit/loadtest/report"
)

// trial is the load test: load, audit, report.
func (p *program) trial(ctx context.Context, o options) (status int, err error) {
	var file *os.File
	if o.json != "" { // before the load: a file that cannot be written is wrong usage
		if file, err = os.Create(o.json); err != nil {
			return exitUsage, fmt.Errorf("-json: %w", err)
		}
		defer func() { err = errors.Join(err, file.Close()) }()
	}
	t, err := open(ctx, o)
	if err != nil {
		return exitUsage, err
	}
	defer func() { err = errors.Join(err, t.close()) }()

	result, err := p.proof(ctx, o, t)
	if err != nil {
		return exitUsage, err
	}
	if err := report.Text(p.stdout, result); err != nil {
		return exitUsage, err
	}
	if file != nil {
		if err := report.JSON(file, result); err != nil {
			return exitUsage, fmt.Errorf("-json: %w", err)
		}
	}
	if !result.Verdict.OK() {
		return exitFailed, nil
	}
	return exitOK, nil
}

// proof puts the target under load and audits it.
func (p *program) proof(ctx context.Context, o options, t *target) (report.Result, error) {
	lim, err := p.limiter(setup{target: t, limit: o.limit, prefix: o.prefix, grace: o.grace})
	if err != nil {
		return report.Result{}, err
	}
	counters := reader{client: t.audit, prefix: o.prefix}
	ledger := audit.NewLedger()

	began := time.Now()
	sent, book, cut := p.drive(ctx, o, lim, ledger, counters)
	took := time.Since(began)
	tally := ledger.Tally()
	if tally.Acknowledged+tally.Ambiguous == 0 {
		if cut {
			return report.Result{}, errors.New("cut short before the first decision: nothing to audit")
		}
		return report.Result{}, fmt.Errorf("none of %d requests got a decision: the cluster is unavailable", sent)
	}

	// The audit has to run when the load was cut short, too.
	after := context.WithoutCancel(ctx)
	last, err := counters.final(after)
	if err != nil {
		return report.Result{}, fmt.Errorf("the counters cannot be read: %w", err)
	}
	book.Add(last, true)
	layout, err := keys.New(o.prefix)
	if err != nil {
		return report.Result{}, err
	}
	verdict := audit.Reconcile(audit.History{
		Promise: audit.Promise{Layout: layout, Rate: o.limit.Rate, Period: o.limit.Period, Grace: o.grace},
		Sent:    sent,
		Account: ledger.Account(),
		Book:    book,
	})
	if !o.keep {
		if left, reason := remove(after, t.audit, book.Keys()); left > 0 {
			fmt.Fprintf(p.stderr, "loadtest: %d counters could not be removed: %v\n", left, reason)
		}
	}
	return report.Result{
		InProcess: t.inner != nil, Users: o.users, Planned: o.requests, Workers: o.workers, Limit: o.limit.String(),
		Seed: o.seed, Prefix: o.prefix, Took: took, CutShort: cut, Verdict: verdict,
	}, nil
}

// drive sends the load, while a collector reads counters and a line shows the progress. cut says
// that ctx ended before the last request.
func (p *program) drive(ctx context.Context, o options, lim limiter.Allower, ledger *audit.Ledger, counters reader) (sent int64, book *audit.Book, cut bool) {
	beside, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	ticks, end := p.ticks(o.grace / passesPerGrace)
	defer end()
	var wg sync.WaitGroup
	wg.Go(func() { book = collect(beside, counters, ticks) })
	if live(p.stderr) {
		wg.Go(func() { progress(beside, p.stderr, ledger, o.requests) })
	}
	sent, err := loadgen.Run(ctx, o.load(), lim, func(a loadgen.Attempt) { record(ledger, a) })
	stop()
	wg.Wait()
	return sent, book, err != nil
}

// record takes down one attempt.
func record(l *audit.Ledger, a loadgen.Attempt) {
	if a.Err == nil {
		l.Acknowledged(a.User, a.Result.Window, a.Result.Key, a.Result.Allowed)
		return
	}
	call, known := errors.AsType[*cluster.CallError](a.Err)
	switch {
	case errors.Is(a.Err, limiter.ErrUnavailable):
		l.Unavailable()
	case known:
		l.Ambiguous(a.User, call.Key)
	default:
		l.Ambiguous(a.User, "") // an error that promises nothing: it may have been counted
	}
}

// removeBatch is how many keys are removed in one pipeline.
const removeBatch = 1000

// remove removes exactly these keys. It returns how many it could not remove, with one
// of the reasons: a key that sits where it should not be is out of reach.
func remove(ctx context.Context, client *cluster.Client, all []string) (left int, reason error) {
	for batch := range slices.Chunk(all, removeBatch) {
		pipe := client.Pipeline()
		for _, key := range batch {
			pipe.Unlink(ctx, key)
		}
		done, _ := pipe.Exec(ctx) // every reply has an error of its own
		for _, cmd := range done {
			if err := cmd.Err(); err != nil {
				left, reason = left+1, err
			}
		}
	}
	return left, reason
}
