package report

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/slotlimit/slotlimit/loadtest/audit"
)

// Text writes the result for people: what was done, a table per node, and the verdict
// with each check and its numbers.
func Text(w io.Writer, r Result) error {
	var b strings.Builder
	head(&b, r)
	disturbances(&b, r)
	b.WriteString("\n" + nodeTable(r.Verdict) + "\n\n")
	verdict(&b, r)
	_, err := io.WriteString(w, b.String())
	return err
}

func head(b *strings.Builder, r Result) {
	where := "cluster"
	if r.InProcess {
		where = "cluster inside this process"
	}
	t := r.Verdict.Totals
	fmt.Fprintf(b, "%s, %d primaries, keys %s:*\n", where, len(r.Verdict.Nodes), r.Prefix)
	fmt.Fprintf(b, "limit %s, %d users, %d workers, seed %d\n", r.Limit, r.Users, r.Workers, r.Seed)
	fmt.Fprintf(b, "%d requests in %v, %.0f decisions/s\n", t.Requests, r.Took.Round(10*time.Millisecond), r.rate())
	if r.Durable {
		b.WriteString("durable: acknowledged only when a replica has it\n")
	}
	if r.CutShort && r.Planned == 0 {
		b.WriteString("CUT SHORT: the verdict is on what was sent\n")
	} else if r.CutShort {
		fmt.Fprintf(b, "CUT SHORT: %d of %d requests were sent; the verdict is on those\n", t.Requests, r.Planned)
	}
}

// nodeTable shows each primary's part. Users and keys are counted where they are, so
// that a key in two places counts twice.
func nodeTable(v audit.Verdict) string {
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	t.Style().Format.Header = text.FormatDefault
	t.Style().Format.Footer = text.FormatDefault
	t.AppendHeader(table.Row{"primary", "slots", "users", "keys", "requests", "allowed", "denied", "share"})
	var sum audit.Node
	for _, n := range v.Nodes {
		t.AppendRow(row(n))
		sum.Slots += n.Slots
		sum.Users += n.Users
		sum.Keys += n.Keys
		sum.Requests += n.Requests
		sum.Allowed += n.Allowed
		sum.Denied += n.Denied
		sum.Share += n.Share
	}
	sum.Addr = "all"
	t.AppendFooter(row(sum))
	var columns []table.ColumnConfig
	for number := 2; number <= len(row(sum)); number++ {
		columns = append(columns, table.ColumnConfig{
			Number: number, Align: text.AlignRight, AlignHeader: text.AlignRight, AlignFooter: text.AlignRight,
		})
	}
	t.SetColumnConfigs(columns)
	return t.Render()
}

func row(n audit.Node) table.Row {
	return table.Row{n.Addr, n.Slots, n.Users, n.Keys, n.Requests, n.Allowed, n.Denied, fmt.Sprintf("%.1f %%", 100*n.Share)}
}

func verdict(b *strings.Builder, r Result) {
	t := r.Verdict.Totals
	fmt.Fprintf(b, "requests %d = acknowledged %d + ambiguous %d + unavailable %d\n",
		t.Requests, t.Acknowledged, t.Ambiguous, t.Unavailable)
	fmt.Fprintf(b, "acknowledged %d = allowed %d + denied %d; stored %d\n\n", t.Acknowledged, t.Allowed, t.Denied, t.Stored)
	var failed []string
	for _, c := range r.Verdict.Checks {
		mark := "ok  "
		if !c.OK {
			mark = "FAIL"
			failed = append(failed, c.Name)
		}
		fmt.Fprintf(b, "%s %-9s  %s\n", mark, c.Name, c.Detail)
		for _, line := range c.Offenders {
			fmt.Fprintf(b, "  %s: %s\n", c.Name, line)
		}
		if c.More > 0 {
			fmt.Fprintf(b, "  %s: and %d more\n", c.Name, c.More)
		}
	}
	if len(failed) > 0 {
		fmt.Fprintf(b, "\nNOT PROVEN: %d of %d checks do not hold: %s\n", len(failed), len(r.Verdict.Checks), strings.Join(failed, ", "))
		return
	}
	fmt.Fprintf(b, "\nPROVEN: all %d checks hold\n", len(r.Verdict.Checks))
}
