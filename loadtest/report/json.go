package report

import (
	"encoding/json"
	"io"

	"github.com/slotlimit/slotlimit/loadtest/audit"
)

// document is the JSON form of a Result. Its totals stand at the top, under the names
// that the verdict uses.
type document struct {
	OK       bool `json:"ok"`
	CutShort bool `json:"cut_short"`
	audit.Totals
	Checks  []audit.Check `json:"checks"`
	Nodes   []audit.Node  `json:"nodes"`
	Load    load          `json:"load"`
	Seconds float64       `json:"seconds"`

	Losses      []audit.Loss      `json:"losses,omitempty"`
	Ambiguities []audit.Ambiguity `json:"ambiguities,omitempty"`
	Faults      []fault           `json:"faults,omitempty"`
	Timeline    []moment          `json:"timeline,omitempty"`
	Shards      []shard           `json:"shards,omitempty"`
}

type fault struct {
	Fault           string   `json:"fault"`
	At              float64  `json:"at_seconds"`
	Shard           string   `json:"shard,omitempty"`
	Node            string   `json:"node,omitempty"`
	Error           string   `json:"error,omitempty"`
	RecoverySeconds *float64 `json:"recovery_seconds"` // null: not seen
	Failed          []Failed `json:"failed,omitempty"`
}

type moment struct {
	At   float64 `json:"at_seconds"`
	Text string  `json:"text"`
}

type shard struct {
	Name         string  `json:"name"`
	Acknowledged int64   `json:"acknowledged"`
	Ambiguous    int64   `json:"ambiguous"`
	Unavailable  int64   `json:"unavailable"`
	Gap          float64 `json:"longest_gap_seconds"`
	GapAt        float64 `json:"longest_gap_at_seconds"`
}

type load struct {
	InProcess bool   `json:"in_process"`
	Requests  int64  `json:"requests"`
	Users     int64  `json:"users"`
	Workers   int    `json:"workers"`
	Limit     string `json:"limit"`
	Seed      uint64 `json:"seed"`
	Prefix    string `json:"prefix"`
	Durable   bool   `json:"durable,omitempty"`
}

// JSON writes the result as one JSON object: ok, cut_short, the totals (requests,
// acknowledged, allowed, denied, ambiguous, unavailable, stored), checks, nodes, load and
// seconds; and if there are any, losses, ambiguities, faults, timeline and shards.
func JSON(w io.Writer, r Result) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	d := document{
		OK:       r.Verdict.OK(),
		CutShort: r.CutShort,
		Totals:   r.Verdict.Totals,
		Checks:   r.Verdict.Checks,
		Nodes:    r.Verdict.Nodes,
		Load: load{
			InProcess: r.InProcess, Requests: r.Planned, Users: r.Users, Workers: r.Workers,
			Limit: r.Limit, Seed: r.Seed, Prefix: r.Prefix, Durable: r.Durable,
		},
		Seconds:     r.Took.Seconds(),
		Losses:      r.Verdict.Losses,
		Ambiguities: r.Verdict.Ambiguities,
	}
	for _, f := range r.Faults {
		one := fault{Fault: f.Fault, At: f.At.Seconds(), Shard: f.Shard, Node: f.Node, Error: f.Error, Failed: f.Failed}
		if f.Recovered {
			seconds := f.Recovery.Seconds()
			one.RecoverySeconds = &seconds
		}
		d.Faults = append(d.Faults, one)
	}
	for _, m := range r.Moments {
		d.Timeline = append(d.Timeline, moment{m.At.Seconds(), m.Text})
	}
	for _, s := range r.Shards {
		d.Shards = append(d.Shards, shard{s.Name, s.Acknowledged, s.Ambiguous, s.Unavailable, s.Gap.Seconds(), s.GapAt.Seconds()})
	}
	return e.Encode(d)
}
