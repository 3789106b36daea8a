package main

import (
	"fmt"

	"github.com/jedib0t/go-pretty/v6/table"
)

// A growth is how the time for a decision changes with the number of users.
type growth struct {
	limiter string
	many    row     // with many users
	few     int     // how many there are with few
	each    float64 // µs for a decision, with many
	ratio   float64 // to that with few
}

// growths compares the rows that differ in the number of users alone with the one that has the fewest.
func growths(rows []row, all []contender, samples []sample) []growth {
	each := func(s sample) float64 { return 1e6 / s.rate() }
	var found []growth
	for _, many := range rows {
		few := many
		for _, r := range rows {
			if r.workload.kind == many.workload.kind && r.goroutines == many.goroutines && r.workload.users < few.workload.users {
				few = r
			}
		}
		if few == many {
			continue
		}
		for _, c := range all {
			with := pick(samples, c.name, many)
			if len(with) == 0 {
				continue // cut short
			}
			found = append(found, growth{
				limiter: c.name, many: many, few: few.workload.users,
				each: 1e6 / sum(with).Rate, ratio: ratio(with, pick(samples, c.name, few), each),
			})
		}
	}
	return found
}

// growthTable is empty where all have the same number of users.
func growthTable(all []growth) string {
	if len(all) == 0 {
		return ""
	}
	t := newTable(table.Row{"limiter", "goroutines", "workload", "us for a decision", "more than with", "users"}, 1)
	for _, g := range all {
		more := "-"
		if g.ratio > 0 {
			more = fmt.Sprintf("%+.1f %%", 100*(g.ratio-1))
		}
		t.AppendRow(table.Row{g.limiter, g.many.goroutines, g.many.workload, number(g.each), more, g.few})
	}
	return "\ntime for a decision by the number of users\n" + t.Render() + "\n"
}
