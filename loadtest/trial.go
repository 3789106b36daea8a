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
	"github.com/slotlimit/slotlimit/loadtest/faults"
	"github.com/slotlimit/slotlimit/loadtest/loadgen"
	"github.com/slotlimit/slotlimit/loadtest/report"
)

// trial is the load test: load, audit, report.
func (p *program) trial(ctx context.Context, o options) (status int, err error) {
	var file *os.File
	if o.json != "" { // before the load: a file that cannot be written is wrong usage
		// The old result stays until there is a new one.
		if file, err = os.OpenFile(o.json, os.O_WRONLY|os.O_CREATE, 0o666); err != nil {
			return exitUsage, fmt.Errorf("-json: %w", err)
		}
		defer func() { err = errors.Join(err, file.Close()) }()
	}
	t, err := open(ctx, o)
	if err != nil {
		return exitUsage, err
	}
	defer func() { err = errors.Join(err, t.close()) }()

	result, broken, err := p.proof(ctx, o, t)
	if err != nil {
		return exitUsage, err
	}
	if err := report.Text(p.stdout, result); err != nil {
		return exitUsage, err
	}
	if file != nil {
		if err := errors.Join(file.Truncate(0), report.JSON(file, result)); err != nil {
			return exitUsage, fmt.Errorf("-json: %w", err)
		}
	}
	if !result.Verdict.OK() {
		return exitFailed, broken
	}
	if broken != nil {
		return exitUsage, broken
	}
	return exitOK, nil
}

// proof puts the target under load and audits it. broken says that a fault could not be made, or not
// be undone: the result is one all the same.
func (p *program) proof(ctx context.Context, o options, t *target) (result report.Result, broken, err error) {
	layout, err := keys.New(o.prefix)
	if err != nil {
		return result, nil, err
	}
	counters := reader{client: t.audit, prefix: o.prefix}
	if err := counters.unused(ctx); err != nil {
		return result, nil, err
	}
	lim, err := p.limiter(setup{target: t, limit: o.limit, prefix: o.prefix, grace: o.grace, durable: o.durable})
	if err != nil {
		return result, nil, err
	}
	var s *screen
	if live(p.stderr) {
		s = &screen{w: p.stderr}
	}
	d, err := disturb(ctx, o, t, s)
	if err != nil {
		return result, nil, err
	}
	var events []audit.Event
	closed := sync.OnceFunc(func() { events = d.close() })
	defer closed()
	run := load{options: o, lim: lim, ledger: audit.NewLedger(), counters: counters, layout: layout, disturbance: d}

	d.start()
	sent, book, cut := p.drive(ctx, run)
	took := time.Since(d.began)
	// What follows has to happen when the load was cut short, too.
	after := context.WithoutCancel(ctx)
	d.restore(after)
	broken = d.failed(cut)
	tally := run.ledger.Tally()
	if tally.Acknowledged+tally.Ambiguous == 0 {
		if cut {
			return result, broken, errors.Join(broken, errors.New("cut short before the first decision: nothing to audit"))
		}
		return result, broken, errors.Join(broken, fmt.Errorf("none of %d requests got a decision: the cluster is unavailable", sent))
	}

	last, err := counters.final(after)
	if err != nil {
		return result, broken, errors.Join(broken, fmt.Errorf("the counters cannot be read: %w", err))
	}
	book.Add(last, true)
	closed() // after the last look at the counters: what happened before it may be why they are what they are
	account := run.ledger.Account()
	verdict := audit.Reconcile(audit.History{
		Promise: audit.Promise{Layout: layout, Rate: o.limit.Rate, Period: o.limit.Period, Grace: o.grace},
		Sent:    sent,
		Account: account,
		Book:    book,
		Events:  events,
		Durable: o.durable,
	})
	if !o.keep {
		if left, reason := remove(after, t.audit, account.Keys()); left > 0 {
			fmt.Fprintf(p.stderr, "loadtest: %d counters could not be removed: %v\n", left, reason)
		}
	}
	result = report.Result{
		InProcess: t.inner != nil, Users: o.users, Planned: o.requests, Workers: o.workers, Limit: o.limit.String(),
		Seed: o.seed, Prefix: o.prefix, Took: took, CutShort: cut, Durable: o.durable, Verdict: verdict,
	}
	d.fill(&result, events)
	return result, broken, nil
}

// A load is all that has a part in the load of one run.
type load struct {
	options
	lim         limiter.Allower
	ledger      *audit.Ledger
	counters    reader
	layout      keys.Layout
	disturbance *disturbance
}

// drive sends the load, while faults are made, a collector reads counters and a line shows the
// progress. cut says that ctx ended before the last request.
func (p *program) drive(ctx context.Context, l load) (sent int64, book *audit.Book, cut bool) {
	beside, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	ticks, end := p.ticks(l.grace / passesPerGrace)
	defer end()
	d := l.disturbance
	var wg sync.WaitGroup
	wg.Go(func() { book = collect(beside, l.counters, ticks) })
	wg.Go(func() { d.plan.Run(beside, d.began, d.record) })
	if d.screen != nil {
		wg.Go(func() { progress(beside, d.screen, l.ledger, l.load(), d.underWay) })
	}
	sent, err := loadgen.Run(ctx, l.load(), l.lim, l.take)
	stop()
	wg.Wait()
	return sent, book, err != nil
}

// take takes down one attempt.
func (l load) take(a loadgen.Attempt) {
	key, class := a.Result.Key, faults.Acknowledged
	if a.Err != nil {
		key, class = "", faults.Ambiguous // an error that promises nothing: it may have been counted
		if call, known := errors.AsType[*cluster.CallError](a.Err); known {
			key = call.Key
		}
		if errors.Is(a.Err, limiter.ErrUnavailable) {
			class = faults.Unavailable
		}
	}
	switch class {
	case faults.Acknowledged:
		l.ledger.AcknowledgedAt(a.Start, a.User, a.Result.Window, key, a.Result.Allowed)
	case faults.Ambiguous:
		l.ledger.AmbiguousBy(audit.CauseOf(a.Err), a.User, key)
	case faults.Unavailable:
		l.ledger.Unavailable()
	}
	if key == "" {
		key, _ = l.layout.User(a.User)
	}
	l.disturbance.record.Add(faults.Outcome{Slot: keys.Slot(key), Start: a.Start, End: a.End, Class: class})
}

// removeBatch is how many keys are removed in one pipeline.
const removeBatch = 1000

// remove removes exactly these keys, those that the limiter named. It returns how many it could not remove, with one
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
