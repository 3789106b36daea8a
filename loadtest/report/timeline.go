package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// An Event is one decision, by the clock of the node that made it.
type Event struct {
	At      int64 // ms of Unix time
	Allowed bool
}

// A Boundary is two bursts around the end of a window.
type Boundary struct {
	Limit  string
	Rate   int64
	Period time.Duration
	Window int64   // the first of the two
	Events []Event // in any order
}

// Peak returns the most attempts that were allowed within one period, wherever that
// period begins, and the time from the first of them to the last.
func (b Boundary) Peak() (allowed int, within time.Duration) {
	var times []int64
	for _, e := range b.Events {
		if e.Allowed {
			times = append(times, e.At)
		}
	}
	slices.Sort(times)
	first := 0
	for last, at := range times {
		for at-times[first] >= b.Period.Milliseconds() {
			first++
		}
		if n := last - first + 1; n > allowed {
			allowed, within = n, time.Duration(at-times[first])*time.Millisecond
		}
	}
	return allowed, within
}

// Late reports that the bursts themselves were a period or more apart, so that
// they show nothing: all were allowed that two windows allow, but not within one period.
func (b Boundary) Late() bool {
	allowed := 0
	for _, e := range b.Events {
		if e.Allowed {
			allowed++
		}
	}
	peak, _ := b.Peak()
	return int64(allowed) == 2*b.Rate && peak < allowed
}

// The picture's size: columns for a window, and rows for the tallest bar.
const (
	windowColumns = 30
	barRows       = 10
)

// Timeline draws the two windows, with a bar for each slice of time.
func Timeline(w io.Writer, b Boundary) error {
	allowed, denied := b.slices()
	tallest := int64(1)
	for i := range allowed {
		tallest = max(tallest, allowed[i]+denied[i])
	}
	var s strings.Builder
	fmt.Fprintf(&s, "limit %s, a burst at the end of a window and one at the start of the next\n", b.Limit)
	fmt.Fprintf(&s, "# allowed  . denied  one column %v, one row %d attempts\n\n",
		b.Period/windowColumns, perRow(tallest))
	for level := int64(barRows); level > 0; level-- {
		var cells strings.Builder
		for i := range allowed {
			if i == windowColumns {
				cells.WriteByte('|')
			}
			cells.WriteByte(cell(allowed[i], allowed[i]+denied[i], level, perRow(tallest)))
		}
		s.WriteString(strings.TrimRight(cells.String(), " ") + "\n")
	}
	s.WriteString(strings.Repeat("-", windowColumns) + "+" + strings.Repeat("-", windowColumns) + "\n")
	for i, offset := range []int{0, windowColumns} {
		a, d := sum(allowed[offset:offset+windowColumns]), sum(denied[offset:offset+windowColumns])
		fmt.Fprintf(&s, "window %d: allowed %d, denied %d\n", b.Window+int64(i), a, d)
	}
	peak, within := b.Peak()
	fmt.Fprintf(&s, "\n%d passed within %v: %.2f times the rate of %d in %v\n",
		peak, within, float64(peak)/float64(b.Rate), b.Rate, b.Period)
	_, err := io.WriteString(w, s.String())
	return err
}

// slices counts the decisions in each column. One outside the two windows is left out.
func (b Boundary) slices() (allowed, denied []int64) {
	allowed, denied = make([]int64, 2*windowColumns), make([]int64, 2*windowColumns)
	period := b.Period.Milliseconds()
	for _, e := range b.Events {
		after := e.At - b.Window*period
		if after < 0 || after >= 2*period {
			continue
		}
		if i := after * windowColumns / period; e.Allowed {
			allowed[i]++
		} else {
			denied[i]++
		}
	}
	return allowed, denied
}

// perRow returns how many attempts one row stands for, at least 1.
func perRow(tallest int64) int64 { return (tallest + barRows - 1) / barRows }

// cell is what a column shows at a level, from 1 at the bottom.
func cell(allowed, all, level, perRow int64) byte {
	below := (level - 1) * perRow // attempts that fill the rows below
	switch {
	case allowed > below:
		return '#'
	case all > below:
		return '.'
	}
	return ' '
}

func sum(numbers []int64) (total int64) {
	for _, n := range numbers {
		total += n
	}
	return total
}
