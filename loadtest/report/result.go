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
	Durable   bool          // counted with WAIT
	Verdict   audit.Verdict

	Faults  []Fault  // that the run made, in the order of their times
	Moments []Moment // the timeline, in order
	Shards  []Shard  // as they were when the load started
}

// A Fault is one that the run was asked to make, and what callers noticed of it.
type Fault struct {
	Fault string        // as the flag takes it
	At    time.Duration // when it was made, from the start of the load
	Shard string        // to which, "" if to all
	Node  string        // likewise
	Error string        // it was not made, or not in full

	// Recovery is how long after At a call for the slots that it hit succeeded, of those that were
	// sent after it had taken effect. Recovered says that there was one.
	Recovery  time.Duration
	Recovered bool

	Failed []Failed // until then, or until it was undone, by shard
}

// Failed counts the calls for the users of one shard that got no decision.
type Failed struct {
	Shard       string `json:"shard"`
	Ambiguous   int64  `json:"ambiguous"`
	Unavailable int64  `json:"unavailable"`
}

// A Moment is a line of the timeline.
type Moment struct {
	At   time.Duration // from the start of the load
	Text string
}

// A Shard is what the callers of the users of one shard were told. It has the address
// that its primary had when the load started.
type Shard struct {
	Name                                 string
	Acknowledged, Ambiguous, Unavailable int64
	Gap                                  time.Duration // the longest time from one decision to the next
	GapAt                                time.Duration // when it began, from the start of the load
}

// rate returns decisions per second.
func (r Result) rate() float64 {
	if r.Took <= 0 {
		return 0
	}
	return float64(r.Verdict.Totals.Acknowledged) / r.Took.Seconds()
}
