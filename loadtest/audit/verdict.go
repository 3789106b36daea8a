package audit

import "fmt"

// A Verdict is what an audit found.
type Verdict struct {
	Totals Totals
	Checks []Check // counters, limit, placement, spread, expiry
	Nodes  []Node  // the primaries, in order of their slots

	// Losses are the acknowledged counts that are gone and for which events account, by what
	// may have taken them. They fail the run in durable mode only. Losses that no event explains are
	// offenders of the counters check.
	Losses []Loss

	// Ambiguities are the lost replies by shard and cause, in order of these.
	Ambiguities []Ambiguity
}

// OK says whether all checks hold.
func (v Verdict) OK() bool {
	for _, c := range v.Checks {
		if !c.OK {
			return false
		}
	}
	return true
}

// Totals are the sums over all users and windows.
type Totals struct {
	Requests     int64 `json:"requests"`     // started; the sum of the next, ambiguous and unavailable
	Acknowledged int64 `json:"acknowledged"` // the caller got a decision
	Allowed      int64 `json:"allowed"`
	Denied       int64 `json:"denied"`
	Ambiguous    int64 `json:"ambiguous"`   // reply lost: counted or not
	Unavailable  int64 `json:"unavailable"` // surely not counted
	Stored       int64 `json:"stored"`      // sum of the counters on the nodes

	// Lost is the sum of what single counters lack of what was acknowledged, explained or not.
	Lost int64 `json:"lost,omitempty"`
}

// A Node is one primary's part of the load.
type Node struct {
	Addr     string  `json:"addr"`
	Slots    int     `json:"slots"`    // hash slots that it owns
	Users    int64   `json:"users"`    // with a decision from it
	Keys     int64   `json:"keys"`     // counters found on it
	Requests int64   `json:"requests"` // acknowledged
	Allowed  int64   `json:"allowed"`
	Denied   int64   `json:"denied"`
	Share    float64 `json:"share"` // of the acknowledged requests, 0 to 1
}

// maxOffenders is how many offenders a check lists.
const maxOffenders = 10

// A Check is one named part of the verdict.
type Check struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail"` // what was compared, with its numbers

	// Offenders are lines that name what is wrong, at most ten; More is how many
	// further ones there are. Empty if OK.
	Offenders []string `json:"offenders,omitempty"`
	More      int64    `json:"more,omitempty"`
}

// fail adds an offender, and formats it only if it will be shown: a check can have
// a million of them.
func (c *Check) fail(format string, args ...any) {
	c.OK = false
	if len(c.Offenders) == maxOffenders {
		c.More++
		return
	}
	c.Offenders = append(c.Offenders, fmt.Sprintf(format, args...))
}

// Reconcile compares what callers were told with what the nodes hold.
func Reconcile(h History) Verdict {
	if h.Book == nil {
		h.Book = &Book{}
	}
	r := newReconciliation(h)
	v := Verdict{Totals: r.totals(), Nodes: r.nodes()}
	for _, check := range checks {
		c := Check{Name: check.name, OK: true}
		check.run(r, &c)
		v.Checks = append(v.Checks, c)
	}
	v.Losses, v.Ambiguities = r.losses, r.ambiguities()
	return v
}

// checks are the parts of the verdict, in the order in which they are shown.
var checks = []struct {
	name string
	run  func(*reconciliation, *Check)
}{
	{"counters", (*reconciliation).counters},
	{"limit", (*reconciliation).limit},
	{"placement", (*reconciliation).placement},
	{"spread", (*reconciliation).spread},
	{"expiry", (*reconciliation).expiry},
}
