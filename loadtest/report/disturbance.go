package report

import (
	"fmt"
	"strings"
	"time"
)

// disturbances tells what happened to the cluster, and what callers noticed of it. Nothing if
// nothing happened and no call failed.
func disturbances(b *strings.Builder, r Result) {
	failed := r.Verdict.Totals.Ambiguous + r.Verdict.Totals.Unavailable
	if len(r.Moments) > 0 {
		b.WriteString("\ntimeline, from the start of the load\n")
		for _, m := range r.Moments {
			fmt.Fprintf(b, "%8.2fs  %s\n", m.At.Seconds(), m.Text)
		}
	}
	if len(r.Faults) > 0 {
		b.WriteString("\nfaults\n")
		for _, f := range r.Faults {
			fmt.Fprintf(b, "  %s\n", f.line())
		}
	}
	if len(r.Shards) == 0 || len(r.Moments) == 0 && len(r.Faults) == 0 && failed == 0 {
		return
	}
	b.WriteString("\nshards, by the primary at the start\n")
	for _, s := range r.Shards {
		fmt.Fprintf(b, "  %s  acknowledged %d, ambiguous %d, unavailable %d; longest gap %s at %.2fs\n",
			s.Name, s.Acknowledged, s.Ambiguous, s.Unavailable, length(s.Gap), s.GapAt.Seconds())
	}
	for _, a := range r.Verdict.Ambiguities {
		fmt.Fprintf(b, "  %s: %d replies lost by %s\n", a.Shard, a.Calls, a.Cause)
	}
	for _, l := range r.Verdict.Losses {
		fmt.Fprintf(b, "  LOST: %v\n", l)
	}
}

// line is a fault in a line: what was done to whom, and how long it was felt.
func (f Fault) line() string {
	var b strings.Builder
	b.WriteString(f.Fault)
	if f.Node != "" {
		b.WriteString(" on " + f.Node)
		if f.Shard != f.Node {
			b.WriteString(", shard of " + f.Shard)
		}
	}
	b.WriteString(": ")
	switch {
	case f.Error != "":
		b.WriteString("NOT MADE, or not in full: " + strings.ReplaceAll(f.Error, "\n", "; "))
		return b.String()
	case f.Recovered:
		fmt.Fprintf(&b, "first decision on its slots again after %s", length(f.Recovery))
	default:
		b.WriteString("no decision on its slots since")
	}
	if len(f.Failed) == 0 {
		b.WriteString("; no call failed")
	}
	for i, shard := range f.Failed {
		sep := "; failed"
		if i > 0 {
			sep = ","
		}
		fmt.Fprintf(&b, "%s on %s: %d ambiguous, %d unavailable", sep, shard.Shard, shard.Ambiguous, shard.Unavailable)
	}
	return b.String()
}

// length is a duration to the precision that it is worth.
func length(d time.Duration) string {
	if d < time.Second {
		return d.Round(time.Millisecond / 10).String()
	}
	return d.Round(10 * time.Millisecond).String()
}
