package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
)

// pauseTable is empty where nothing was paused.
func pauseTable(all []pauseSample) string {
	if len(all) == 0 {
		return ""
	}
	t := newTable(table.Row{
		"limiter", "primary", "round", "before, decisions/s", "the others alone", "during the pause", "of before", "of alone", "errors",
	}, 1)
	kept := map[string][][2]float64{}
	var limiters []string
	for i, s := range all {
		if i > 0 && (all[i-1].Round != s.Round || all[i-1].Limiter != s.Limiter) {
			t.AppendSeparator()
		}
		before, alone := "paused", "paused"
		if !s.Paused {
			before, alone = percent(s.kept()), percent(s.keptAlone())
			if kept[s.Limiter] == nil {
				limiters = append(limiters, s.Limiter)
			}
			kept[s.Limiter] = append(kept[s.Limiter], [2]float64{s.kept(), s.keptAlone()})
		}
		t.AppendRow(table.Row{
			s.Limiter, s.Primary, s.Round + 1, fmt.Sprintf("%.0f", s.Before), fmt.Sprintf("%.0f", s.Alone), fmt.Sprintf("%.0f", s.During),
			before, alone, s.Errors,
		})
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\n%d goroutines for each primary. before: all primaries have load. the others alone: that which will be\npaused has none. during the pause: it has, and does not answer.\n%s\n", all[0].Goroutines, t.Render())
	for _, name := range limiters {
		var before, alone []float64
		for _, k := range kept[name] {
			before, alone = append(before, k[0]), append(alone, k[1])
		}
		fmt.Fprintf(&b, "%s: the other primaries kept %s of their rate before (median; at least %s), %s of that alone (at least %s)\n",
			name, percent(median(before)), percent(slices.Min(before)), percent(median(alone)), percent(slices.Min(alone)))
	}
	return b.String()
}

func percent(x float64) string { return fmt.Sprintf("%.1f %%", 100*x) }
