package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/term"

	"github.com/slotlimit/slotlimit/loadtest/audit"
)

// progressEvery is how often the line is drawn.
const progressEvery = 200 * time.Millisecond

// live says whether someone can watch a line change.
func live(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// progress draws one line over and over until ctx ends, and then wipes it.
func progress(ctx context.Context, w io.Writer, ledger *audit.Ledger, planned int64) {
	const wipe = "\r\x1b[K"
	began := time.Now()
	ticker := time.NewTicker(progressEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			fmt.Fprint(w, wipe)
			return
		case <-ticker.C:
			fmt.Fprint(w, wipe+line(ledger.Tally(), planned, time.Since(began)))
		}
	}
}

// line is the progress in at most 100 columns, so that it fits a terminal.
func line(t audit.Tally, planned int64, took time.Duration) string {
	ended := t.Ended()
	return fmt.Sprintf("%d of %d (%d %%), %.0f/s: allowed %d, denied %d, ambiguous %d, unavailable %d",
		ended, planned, 100*ended/planned, float64(ended)/took.Seconds(),
		t.Allowed, t.Acknowledged-t.Allowed, t.Ambiguous, t.Unavailable)
}
