package main

import (
	"context"
	"time"

	"github.com/slotlimit/slotlimit/loadtest/audit"
)

// passesPerGrace is how often a collector looks while a counter outlives its window:
// more than once, so that a pass which fails or takes long is made up for.
const passesPerGrace = 4

// collect makes a pass at every tick until ctx ends, and returns the book of them. It is for
// runs that are longer than counters live: what has expired by the end was read here.
//
// A pass that fails is left out. If that leaves a counter unread for good, the audit says so.
func collect(ctx context.Context, r reader, ticks <-chan time.Time) *audit.Book {
	book := &audit.Book{}
	for {
		select {
		case <-ctx.Done():
			return book
		case <-ticks:
		}
		if p, err := r.pass(ctx); err == nil {
			book.Add(p, false)
		}
	}
}
