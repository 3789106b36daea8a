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
}

type load struct {
	InProcess bool   `json:"in_process"`
	Requests  int64  `json:"requests"`
	Users     int64  `json:"users"`
	Workers   int    `json:"workers"`
	Limit     string `json:"limit"`
	Seed      uint64 `json:"seed"`
	Prefix    string `json:"prefix"`
}

// JSON writes the result as one JSON object: ok, cut_short, the totals (requests,
// acknowledged, allowed, denied, ambiguous, unavailable, stored), checks, nodes, load and
// seconds.
func JSON(w io.Writer, r Result) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(document{
		OK:       r.Verdict.OK(),
		CutShort: r.CutShort,
		Totals:   r.Verdict.Totals,
		Checks:   r.Verdict.Checks,
		Nodes:    r.Verdict.Nodes,
		Load: load{
			InProcess: r.InProcess, Requests: r.Planned, Users: r.Users, Workers: r.Workers,
			Limit: r.Limit, Seed: r.Seed, Prefix: r.Prefix,
		},
		Seconds: r.Took.Seconds(),
	})
}
