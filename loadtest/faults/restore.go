package faults

import (
	"context"
	"fmt"
	"maps"
	"time"
)

const (
	promotionTimeout = 20 * time.Second
	wholeTimeout     = 60 * time.Second
)

// Restore leaves the cluster whole after the load: it ends moves of slots that a fault
// had to leave, starts killed nodes again, and waits until every node agrees with
// every other. It tells what it did by the plan's Tell, and returns the lines, too.
func (p *Plan) Restore(ctx context.Context) (steps []Step, err error) {
	tell := func(format string, args ...any) {
		s := Step{time.Now(), fmt.Sprintf(format, args...)}
		steps = append(steps, s)
		p.cfg.Tell(s.At, s.Text)
	}
	if len(p.deeds) == 0 {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, promotionTimeout+wholeTimeout)
	defer cancel()
	p.mu.Lock()
	broken := maps.Clone(p.broken)
	moves := p.moves
	p.moves = nil
	p.mu.Unlock()
	for n, d := range broken {
		if err := p.mend(ctx, n, d); err != nil {
			return steps, fmt.Errorf("%s could not be restored: %w", n.Addr, err)
		}
		switch d {
		case killed:
			tell("%s started again", n.Addr)
		case paused:
			tell("%s runs on", n.Addr)
		case cut:
			tell("%s joined to its peers again", n.Addr)
		}
	}
	for _, m := range moves {
		if err := p.finish(ctx, m); err != nil {
			return steps, err
		}
	}
	began := time.Now()
	wait, cancel := context.WithTimeout(ctx, wholeTimeout)
	defer cancel()
	if err := until(wait, func() error { return whole(wait, p.nodes) }); err != nil {
		return steps, fmt.Errorf("the cluster is not whole after %v: %w", time.Since(began).Round(time.Second), err)
	}
	tell("the cluster is whole")
	return steps, nil
}

func (p *Plan) mend(ctx context.Context, n *Node, d damage) error {
	var err error
	switch d {
	case killed:
		// Back before its replica was promoted, it would be a primary that has lost all.
		wait, cancel := context.WithTimeout(ctx, promotionTimeout)
		defer cancel()
		_ = until(wait, func() error { return p.replaced(wait, n) })
		err = n.machine.Start(ctx)
	case paused:
		err = n.machine.Resume(ctx)
	case cut:
		err = n.machine.Join(ctx)
	}
	if err == nil {
		p.damage(n, 0)
	}
	return err
}

// replaced returns nil if a node is not the primary of any slot, as the others see it.
func (p *Plan) replaced(ctx context.Context, n *Node) error {
	states, err := p.look(ctx)
	if err != nil {
		return err
	}
	for _, s := range states {
		if s.Node == n && len(s.slots) > 0 {
			return fmt.Errorf("%s is the primary still", n.Addr)
		}
	}
	return nil
}
