package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/slotlimit/slotlimit/loadtest/audit"
	"github.com/slotlimit/slotlimit/loadtest/loadgen"
)

// progressEvery is how often the line is drawn.
const progressEvery = 200 * time.Millisecond

// live says whether someone can watch a line change.
func live(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// A screen is a terminal with one line that changes, and lines above it that stay. It is
// safe for concurrent use. A nil one shows nothing.
type screen struct {
	mu sync.Mutex
	w  io.Writer
}

// lineColumns is how much of the line is drawn: one that wraps could not be wiped.
const lineColumns = 120

const wipe = "\r\x1b[K"

// draw replaces the line that changes.
func (s *screen) draw(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprint(s.w, wipe+line[:min(len(line), lineColumns)])
}

// say adds a line that stays.
func (s *screen) say(line string) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprint(s.w, wipe+line+"\n")
}

// progress draws one line over and over until ctx ends, and then wipes it.
func progress(ctx context.Context, s *screen, ledger *audit.Ledger, load loadgen.Load, underWay func() string) {
	began := time.Now()
	ticker := time.NewTicker(progressEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			s.draw("")
			return
		case <-ticker.C:
			s.draw(underWay() + line(ledger.Tally(), load, time.Since(began)))
		}
	}
}

// line is the progress.
func line(t audit.Tally, load loadgen.Load, took time.Duration) string {
	ended := t.Ended()
	of := ""
	if load.Requests > 0 {
		of = fmt.Sprintf(" of %d (%d %%)", load.Requests, 100*ended/load.Requests)
	} else {
		of = fmt.Sprintf(" (%.0f of %.0f s)", took.Seconds(), load.Duration.Seconds())
	}
	return fmt.Sprintf("%d%s, %.0f/s: allowed %d, denied %d, ambiguous %d, unavailable %d",
		ended, of, float64(ended)/took.Seconds(),
		t.Allowed, t.Acknowledged-t.Allowed, t.Ambiguous, t.Unavailable)
}
