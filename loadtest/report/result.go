package report

import (
	"time"

	"github.com/slotlimit/slotlimit/loadtest/audit"
)

// A Result is a load test that has ended.
type Result struct {
	InProcess bool // the cluster was inside the process
	Users     int64
	Planned   int64 // requests that were asked for
	Workers   int
	Limit     string // as the flag takes it
	Seed      uint64
	Prefix    string        // of the Redis keys
	Took      time.Duration // the load, without the audit
	CutShort  bool          // ended before the last request
	Verdict   audit.Verdict
}

// rate returns decisions per second.
func (r Result) rate() float64 {
	if r.Took <= 0 {
		return 0
	}
	return float64(r.Verdict.Totals.Acknowledged) / r.Took.Seconds()
}
