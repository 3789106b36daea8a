package main

import (
	"fmt"
	"strings"
)

// A judgement is what is known of the counts of one limiter.
type judgement struct {
	limiter string
	wrong   []string
	right   []string
	errors  []string // attempts without a decision, which are no wrong counts
}

// judge gathers what was found of one limiter, before it was measured and meanwhile.
func judge(r result, c contender) judgement {
	j := judgement{limiter: c.name}
	for _, f := range r.Findings {
		if f.Limiter == c.name && f.OK {
			j.right = append(j.right, f.Check+": "+f.Detail)
		} else if f.Limiter == c.name {
			j.wrong = append(j.wrong, f.Check+": "+f.Detail)
		}
	}
	decisions := int64(0)
	for _, s := range r.Samples {
		if s.Limiter == c.name {
			decisions += s.Decisions
			j.add(fmt.Sprintf("round %d, %v", s.Round+1, s.row()), s.Wrong, s.Errors, s.Error)
		}
	}
	for _, s := range r.Pauses {
		if s.Limiter == c.name {
			j.add(fmt.Sprintf("round %d, %s", s.Round+1, s.Primary), s.Wrong, s.Errors, s.Error)
		}
	}
	if decisions > 0 && c.counts {
		j.right = append(j.right, fmt.Sprintf("measured: %d decisions, and each user's counter as it should be after every measurement", decisions))
	} else if decisions > 0 {
		j.right = append(j.right, fmt.Sprintf("measured: %d decisions, all allowed, as they should be; it keeps no count of them", decisions))
	}
	return j
}

func (j *judgement) add(where, wrong string, errors int64, err string) {
	if wrong != "" {
		j.wrong = append(j.wrong, where+": "+wrong)
	}
	if errors > 0 {
		j.errors = append(j.errors, fmt.Sprintf("%s: %d attempts got no decision, but such as: %s", where, errors, err))
	}
}

// String is a line with the verdict, and what it rests on.
func (j judgement) String() string {
	verdict, why := "counted right", j.right
	if len(j.wrong) > 0 {
		verdict, why = "COUNTED WRONG", shortened(j.wrong)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%-10s  %s\n", j.limiter, verdict)
	for _, line := range append(why, shortened(j.errors)...) {
		fmt.Fprintf(&b, "            %s\n", line)
	}
	return b.String()
}

// shortened keeps the first lines of many.
func shortened(lines []string) []string {
	const most = 3
	if len(lines) <= most {
		return lines
	}
	return append(lines[:most:most], fmt.Sprintf("and in %d more measurements", len(lines)-most))
}
