package report_test

import (
	"fmt"
	"time"

	"github.com/slotlimit/slotlimit/loadtest/report"
)

// Two a second, and yet four within 200 ms.
func ExampleBoundary_Peak() {
	b := report.Boundary{Rate: 2, Period: time.Second, Events: []report.Event{
		{At: 900, Allowed: true}, {At: 900, Allowed: true}, {At: 950},
		{At: 1100, Allowed: true}, {At: 1100, Allowed: true}, {At: 1150},
	}}
	fmt.Println(b.Peak())
	// Output: 4 200ms
}
