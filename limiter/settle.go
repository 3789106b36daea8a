package limiter

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

// dueOrder is a heap of debts, the one that is due first on top.
type dueOrder []*debt

func (o dueOrder) Len() int           { return len(o) }
func (o dueOrder) Less(i, j int) bool { return o[i].due.Before(o[j].due) }
func (o dueOrder) Swap(i, j int) {
	o[i], o[j] = o[j], o[i]
	o[i].index, o[j].index = i, j
}

// Push is for package heap.
func (o *dueOrder) Push(d any) {
	d.(*debt).index = len(*o)
	*o = append(*o, d.(*debt))
}

// Pop is for package heap.
func (o *dueOrder) Pop() any {
	last := len(*o) - 1
	d := (*o)[last]
	(*o)[last] = nil
	*o = (*o)[:last]
	return d
}

// A settleTimer goes off when the first debt is due. While nothing is owed it is off.
type settleTimer struct {
	mu    sync.Mutex
	timer *time.Timer
	at    time.Time // zero when it is off
}

// arm sets the timer for a debt that is due at a time, unless it goes off before that.
func (t *settleTimer) arm(l *Limiter, due, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.at.IsZero() && !due.Before(t.at) {
		return
	}
	t.at = due
	if t.timer == nil {
		t.timer = time.AfterFunc(due.Sub(now), l.settleDue)
	} else {
		t.timer.Reset(due.Sub(now))
	}
}

// settleDue settles what is due, and sets the timer for what is not.
func (l *Limiter) settleDue() {
	t := &l.denials.timer
	t.mu.Lock()
	by := t.at
	t.at = time.Time{}
	t.mu.Unlock()
	var due []*debt
	var next time.Time
	for i := range l.denials.shards {
		s := &l.denials.shards[i]
		s.mu.Lock()
		due = append(due, s.postpone(by, l.denials.refresh)...)
		if len(s.order) > 0 && (next.IsZero() || s.order[0].due.Before(next)) {
			next = s.order[0].due
		}
		s.mu.Unlock()
	}
	if !next.IsZero() {
		t.arm(l, next, by)
	}
	// What fails stays owed, or is in the losses. There is no caller to meet a panic of the
	// Runner.
	defer func() { _ = recover() }()
	_ = l.settle(context.Background(), due)
}

// settle adds debts to their counters, and returns when that is done, with an error of one
// for which it failed.
func (l *Limiter) settle(ctx context.Context, owed []*debt) (cause error) {
	m := l.newMany(len(owed))
	for i, d := range owed {
		if l.now().After(d.ends.Add(l.grace)) {
			l.writeOff(d)
		} else {
			m.places[i] = m.gather(ctx, settlement, d.tag, 0, d.at)
		}
	}
	m.send(ctx)
	for _, at := range m.places {
		if at.party == nil {
			continue
		}
		if _, err := m.verdict(ctx, at); err != nil {
			cause = err
		}
	}
	m.recycle()
	return cause
}

// afterSettlement makes an attempt of a user, behind a settlement of what the user's
// earlier ones owe. No caller makes the settlement: one who gives up would leave it
// unknown what became of it.
func (l *Limiter) afterSettlement(ctx context.Context, tag string, cost int64, owedTo counter) (Result, error) {
	deadline, _ := ctx.Deadline()
	s := l.crowds.of(tag)
	s.mu.Lock()
	c := s.crowds[tag]
	nobody := c == nil
	if nobody {
		c = s.found(tag)
	}
	first, _ := c.join(settlement, 0, time.Time{})
	first.guided, first.trip.at = true, owedTo
	p, m := c.join(attempts, cost, deadline)
	s.mu.Unlock()
	if nobody {
		l.handOn(s, c)
	}
	return l.follow(ctx, place{s, c, p, m, tag})
}

// writeOff gives up a debt to a counter that is gone.
func (l *Limiter) writeOff(d *debt) {
	s := l.denials.of(d.tag)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byKey[d.at.key] == d {
		s.pull(d.at.key)
		l.denials.losses.add(d.cost, 0, errCounterGone)
	}
}

// Flush adds to the counters what is owed to them for attempts that were denied locally,
// see [WithDenialCache], and returns when that is done. For a limiter without that
// option there is nothing to do.
//
// It returns ErrUnsettled if some could not be added, with the numbers: attempts that
// are still owed, for which it may be called again; and, since the last Flush,
// those that were lost with their counter, and those of which nobody knows. It returns
// within ctx's deadline.
func (l *Limiter) Flush(ctx context.Context) error {
	if l.denials == nil {
		return nil
	}
	var owed []*debt
	for i := range l.denials.shards {
		s := &l.denials.shards[i]
		s.mu.Lock()
		owed = slices.AppendSeq(slices.AppendSeq(owed, maps.Values(s.byKey)), maps.Keys(s.carried))
		s.mu.Unlock()
	}
	cause := l.settle(ctx, owed)
	still := int64(0)
	for _, d := range owed {
		s := l.denials.of(d.tag)
		s.mu.Lock()
		if _, carried := s.carried[d]; carried || s.byKey[d.at.key] == d {
			still += d.cost
		}
		s.mu.Unlock()
	}
	return l.denials.losses.report(still, cause)
}

// report returns what is not in the counters as an error, if there is any, and begins anew.
func (o *losses) report(still int64, cause error) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	gone, unsure := o.gone, o.unsure
	if cause == nil {
		cause = o.cause
	}
	o.gone, o.unsure, o.cause = 0, 0, nil
	if still+gone+unsure == 0 {
		return nil
	}
	return fmt.Errorf("%w: %d still owed, %d lost, %d that may have been added: %w", ErrUnsettled, still, gone, unsure, cause)
}
