package main

import (
	"fmt"
	"math"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	prettytext "github.com/jedib0t/go-pretty/v6/text"
)

// text is the result for people: what was measured, a table for each workload, and what was
// found of the counts.
func text(r result) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n%s\n", r.Cluster, r.Client)
	if r.CutShort {
		b.WriteString("CUT SHORT: what was measured until then\n")
	}
	for _, c := range r.contenders {
		fmt.Fprintf(&b, "  %-10s  %s: %s\n", c.name, r.Modules[c.name], c.about)
	}
	if len(r.Rows) > 0 {
		fmt.Fprintf(&b, "\nrounds: %d, %.3g s for each limiter in each\n%s", r.Options.Rounds, r.Options.Seconds, legend)
	}
	workloads := map[workload]bool{}
	for _, row := range r.rows {
		if !workloads[row.workload] {
			workloads[row.workload] = true
			b.WriteString(workloadTable(row.workload, r.Own[row.workload.String()], r.Rows))
		}
	}
	b.WriteString(growthTable(growths(r.rows, r.contenders, r.Samples)))
	b.WriteString(pauseTable(r.Pauses))
	b.WriteString("\n")
	for _, c := range r.contenders {
		b.WriteString(judge(r, c).String())
	}
	return b.String()
}

const legend = `Medians over the rounds; ratios are formed within a round.
x redis_rate and x ceiling (pipeline) are of decisions/s, p50 x evalsha is of p50. A decision of
pipeline takes as long as its pipeline. CPU in us for a decision: of the client's process, and of
all primaries together. allocs for a decision. Errors are no decisions.
`

// workloadTable has the rows of one workload. own is what this program costs by itself, in µs
// for a decision.
func workloadTable(w workload, own float64, all []summary) string {
	t := newTable(table.Row{
		"goroutines", "limiter", "decisions/s", "min..max", "x redis_rate", "x ceiling",
		"p50", "p99", "p99.9", "p50 x evalsha", "client us", "servers us", "allocs", "errors", "counted",
	}, 2)
	last := 0
	for _, s := range all {
		if s.Workload != w.kind || s.Users != w.users {
			continue
		}
		if last != 0 && last != s.Goroutines {
			t.AppendSeparator()
		}
		last = s.Goroutines
		counted := "right"
		if s.Wrong != "" {
			counted = "WRONG"
		}
		t.AppendRow(table.Row{
			s.Goroutines, s.Limiter, fmt.Sprintf("%.0f", s.Rate), fmt.Sprintf("%.0f..%.0f", s.RateMin, s.RateMax),
			number(s.ToYardstick), number(s.ToCeiling), duration(s.P50), duration(s.P99), duration(s.P999), number(s.ToBare),
			number(s.ClientCPU), number(s.ServerCPU), number(s.Allocs), s.Errors, counted,
		})
	}
	if last == 0 {
		return "" // cut short before
	}
	return fmt.Sprintf("\n%v; %s us of each client us are the measuring's own\n%s\n", w, number(own), t.Render())
}

// newTable makes a table with that header, whose columns are numbers but for one, by its
// number from 1.
func newTable(header table.Row, words int) table.Writer {
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	t.Style().Format.Header = prettytext.FormatDefault
	t.AppendHeader(header)
	var columns []table.ColumnConfig
	for n := 1; n <= len(header); n++ {
		if n != words {
			columns = append(columns, table.ColumnConfig{Number: n, Align: prettytext.AlignRight, AlignHeader: prettytext.AlignRight})
		}
	}
	t.SetColumnConfigs(columns)
	return t
}

// number has three digits, or more if it is above 1000. 0 means that there is none.
func number(x float64) string {
	if x == 0 {
		return "-"
	}
	if math.Abs(x) >= 100 {
		return fmt.Sprintf("%.0f", x)
	}
	if math.Abs(x) >= 10 {
		return fmt.Sprintf("%.1f", x)
	}
	return fmt.Sprintf("%.2f", x)
}

// duration shows µs. 0 means that there is none.
func duration(us float64) string {
	switch {
	case us == 0:
		return "-"
	case us >= 1e6:
		return number(us/1e6) + " s"
	case us >= 1e3:
		return number(us/1e3) + " ms"
	}
	return number(us) + " us"
}
