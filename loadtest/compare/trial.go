package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"
)

// ample is the limit under which limiters are measured: nobody reaches it.
var ample = quota{rate: 1e9, period: 24 * time.Hour}

// errInterrupted says that nothing was measured before an interrupt.
var errInterrupted = errors.New("interrupted before anything was measured")

// A trial is one run of the program.
type trial struct {
	options
	program    *program
	target     *target
	contenders []contender
	rows       []row
	ledgers    map[string]*ledger // by limiter
	tag        string             // that all users of this run have in their names

	findings []finding
	own      map[string]float64 // by workload; see result
	samples  []sample
	pauses   []pauseSample
	cut      bool // by an interrupt
}

// newTrial opens the chosen limiters.
func (p *program) newTrial(ctx context.Context, o options, t *target) (*trial, error) {
	var id [4]byte
	_, _ = rand.Read(id[:]) // never fails
	tr := &trial{
		options: o, program: p, target: t, contenders: chosen(p.contenders, o.limiters),
		ledgers: map[string]*ledger{}, tag: hex.EncodeToString(id[:]),
	}
	for _, w := range o.loads() {
		for _, n := range o.goroutines {
			tr.rows = append(tr.rows, row{w, n})
		}
	}
	users := userNames(slices.Max(o.users), tr.tag)
	for _, c := range tr.contenders {
		r, err := c.open(ctx, t, ample)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.name, err)
		}
		tr.ledgers[c.name] = newLedger(c, ample, r, users)
	}
	return tr, nil
}

// trial opens all that a run needs, lets it do its work, and writes the result.
func (p *program) trial(ctx context.Context, o options, work func(*trial, context.Context) error) (status int, err error) {
	out, err := openOutputs(o)
	if err != nil {
		return exitUsage, err
	}
	defer func() { err = errors.Join(err, out.close()) }()
	target, err := open(ctx, o)
	if err != nil {
		return exitUsage, err
	}
	defer func() { err = errors.Join(err, target.close()) }()
	t, err := p.newTrial(ctx, o, target)
	if err != nil {
		return exitUsage, err
	}
	defer func() { err = errors.Join(err, target.remove(ctx, t.tag)) }()
	if err := work(t, ctx); err != nil {
		return exitUsage, err
	}
	r := t.result()
	if err := out.write(p.stdout, r); err != nil {
		return exitUsage, err
	}
	if !r.OK {
		return exitFailed, nil
	}
	return exitOK, nil
}

// compare is the whole comparison: correctness, then measurements.
func (t *trial) compare(ctx context.Context) (err error) {
	t.program.progress("does each count right?")
	if t.findings, err = t.correctness(ctx); err != nil {
		return err
	}
	t.measureOwn(ctx)
	if err := t.measureAll(ctx); err != nil {
		return err
	}
	if len(t.samples) == 0 {
		return errInterrupted
	}
	return nil
}

// measureAll measures every limiter at every row in every round. Who comes first changes from
// round to round, of limiters and of rows: whoever follows a greedy one, or has the
// machine when it is loaded by others, is not always the same.
func (t *trial) measureAll(ctx context.Context) error {
	for round := range t.rounds {
		for i := range t.rows {
			index := (i + round) % len(t.rows)
			t.program.progress("round %d of %d: %v", round+1, t.rounds, t.rows[index])
			for j := range t.contenders {
				s, err := t.measure(ctx, round, index, t.contenders[(j+round)%len(t.contenders)])
				if ctx.Err() != nil {
					t.cut = true
					return nil
				}
				if err != nil {
					return err
				}
				t.samples = append(t.samples, s)
			}
		}
	}
	return nil
}

// outputs are the files that a run writes, opened before it: one that cannot be written is
// wrong usage.
type outputs struct{ json, plot *os.File }

func openOutputs(o options) (_ outputs, err error) {
	var out outputs
	for _, f := range []struct {
		flag, name string
		file       **os.File
	}{{"-json", o.json, &out.json}, {"-plot", o.plot, &out.plot}} {
		if f.name == "" {
			continue
		}
		// The old result stays until there is a new one.
		if *f.file, err = os.OpenFile(f.name, os.O_WRONLY|os.O_CREATE, 0o666); err != nil {
			return out, errors.Join(fmt.Errorf("%s: %w", f.flag, err), out.close())
		}
	}
	return out, nil
}

func (o outputs) close() error {
	var errs []error
	for _, f := range []*os.File{o.json, o.plot} {
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	return errors.Join(errs...)
}
