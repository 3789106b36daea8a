package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/slotlimit/slotlimit/loadtest/audit"
	"github.com/slotlimit/slotlimit/loadtest/faults"
	"github.com/slotlimit/slotlimit/loadtest/report"
	"github.com/slotlimit/slotlimit/loadtest/watch"
)

// lookEvery is how often the watcher looks at the cluster.
const lookEvery = 200 * time.Millisecond

// A disturbance is what happens to the cluster during a run, by the run's own faults or by
// others, and what the callers notice of it.
type disturbance struct {
	plan    *faults.Plan
	watcher *watch.Watcher
	record  *faults.Record
	screen  *screen
	began   time.Time
	ended   time.Time // of the load

	restored []faults.Step
	unable   error // the cluster could not be left whole
}

// disturb prepares the faults and starts to watch the cluster. It fails if a fault cannot be made.
func disturb(ctx context.Context, o options, t *target, s *screen) (*disturbance, error) {
	d := &disturbance{screen: s}
	cfg := faults.Config{Client: t.audit, Faults: o.faults, Seed: o.seed, Tell: d.tell, Announce: d.announce}
	if t.inner != nil {
		innerFaults(t.inner, &cfg)
	}
	var err error
	if d.plan, err = faults.Prepare(ctx, cfg); err != nil {
		return nil, err
	}
	d.watcher, err = watch.Start(context.WithoutCancel(ctx), t.audit, lookEvery, func(e audit.Event) {
		d.tell(e.To, noticed(e))
	})
	if err != nil {
		return nil, errors.Join(err, d.plan.Close())
	}
	return d, nil
}

// start says that the load begins now.
func (d *disturbance) start() {
	d.began = time.Now()
	d.record = faults.NewRecord(d.began, d.plan.Shards())
}

// close ends the watch, and returns its events.
func (d *disturbance) close() []audit.Event {
	events := d.watcher.Stop()
	_ = d.plan.Close()
	return events
}

func (d *disturbance) announce(replica string) func(bool) {
	p := d.watcher.Plan(replica)
	return func(made bool) {
		if made {
			p.Done()
		} else {
			p.Drop()
		}
	}
}

// tell shows a line of the timeline to whoever watches the run.
func (d *disturbance) tell(at time.Time, text string) {
	if !d.began.IsZero() {
		d.screen.say(fmt.Sprintf("%6.2fs  %s", at.Sub(d.began).Seconds(), text))
	}
}

// underWay names the faults that are being made now, for the line of the progress.
func (d *disturbance) underWay() string {
	var names []string
	for _, deed := range d.plan.Deeds() {
		if deed.Outage == nil {
			continue
		}
		if _, served := deed.Outage.Recovery(); !served {
			names = append(names, deed.Fault.Name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return strings.Join(names, ", ") + "! "
}

// restore leaves the cluster whole.
func (d *disturbance) restore(ctx context.Context) {
	d.ended = time.Now()
	d.restored, d.unable = d.plan.Restore(ctx)
}

// failed returns an error unless all faults were made, and the cluster is whole again.
// cut says that the run was interrupted, and then they need not have been: the report tells
// how far each came.
func (d *disturbance) failed(cut bool) error {
	errs := []error{d.unable}
	for _, deed := range d.plan.Deeds() {
		switch {
		case cut:
		case deed.Err != nil:
			errs = append(errs, fmt.Errorf("-fault %v: %w", deed.Fault, deed.Err))
		case deed.Began.IsZero():
			errs = append(errs, fmt.Errorf("-fault %v: the load had ended before", deed.Fault))
		}
	}
	return errors.Join(errs...)
}

// noticed is an event as a line.
func noticed(e audit.Event) string {
	var b strings.Builder
	fmt.Fprintf(&b, "noticed: %s: %s", e.Kind, e.Node)
	if e.Was != "" {
		fmt.Fprintf(&b, ", was %s", e.Was)
	}
	if len(e.Slots) > 0 && e.Kind != audit.SlotsMoved { // whose detail has the number
		fmt.Fprintf(&b, ", %s", slotsText(e.Slots))
	}
	if e.Detail != "" {
		fmt.Fprintf(&b, ", %s", e.Detail)
	}
	if e.Graceful && e.Kind == audit.Promotion {
		b.WriteString(", graceful")
	}
	return b.String()
}

func slotsText(all []audit.SlotRange) string {
	n := 0
	for _, r := range all {
		n += r.Last - r.First + 1
	}
	if len(all) == 1 && n > 1 {
		return fmt.Sprintf("slots %d-%d", all[0].First, all[0].Last)
	}
	return fmt.Sprintf("%d slots", n)
}

// fill puts it all into the result.
func (d *disturbance) fill(r *report.Result, events []audit.Event) {
	since := func(t time.Time) time.Duration { return t.Sub(d.began) }
	for _, e := range events {
		r.Moments = append(r.Moments, report.Moment{At: since(e.To), Text: noticed(e)})
	}
	for _, step := range d.restored {
		r.Moments = append(r.Moments, report.Moment{At: since(step.At), Text: "after the load: " + step.Text})
	}
	for _, deed := range d.plan.Deeds() {
		for _, step := range deed.Steps {
			r.Moments = append(r.Moments, report.Moment{At: since(step.At), Text: deed.Fault.Name + ": " + step.Text})
		}
		r.Faults = append(r.Faults, d.fault(deed))
	}
	slices.SortStableFunc(r.Moments, func(a, b report.Moment) int { return cmp.Compare(a.At, b.At) })
	for _, s := range d.record.Close(d.ended) {
		r.Shards = append(r.Shards, report.Shard{
			Name: s.Shard.Name, Acknowledged: s.Acknowledged, Ambiguous: s.Ambiguous, Unavailable: s.Unavailable,
			Gap: s.Gap, GapAt: since(s.GapFrom),
		})
	}
}

func (d *disturbance) fault(deed faults.Deed) report.Fault {
	f := report.Fault{Fault: deed.Fault.String(), Node: deed.Node, Shard: deed.Shard}
	if deed.Err != nil {
		f.Error = deed.Err.Error()
	}
	if deed.Outage == nil {
		if deed.Err == nil {
			f.Error = "the load had ended before"
		}
		return f
	}
	f.At = deed.Began.Sub(d.began)
	f.Recovery, f.Recovered = deed.Outage.Recovery()
	for i, failures := range deed.Outage.Failed() {
		if failures != (faults.Failures{}) {
			f.Failed = append(f.Failed, report.Failed{
				Shard: d.plan.Shards()[i].Name, Ambiguous: failures.Ambiguous, Unavailable: failures.Unavailable,
			})
		}
	}
	return f
}
