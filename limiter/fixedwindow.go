package limiter

import (
	_ "embed"
	"time"

	"github.com/slotlimit/slotlimit/cluster"
)

var (
	//go:embed lua/fixed_window.lua
	fixedWindowText string
	//go:embed lua/reset.lua
	resetText string

	fixedWindowScript = cluster.NewScript(fixedWindowText)
	resetScript       = cluster.NewScript(resetText)
)

// Scripts returns the scripts that limiters run, for [cluster.Client.Preload].
func Scripts() []*cluster.Script {
	return []*cluster.Script{fixedWindowScript, resetScript}
}

// A windowReply is the reply of a script that works on one window: lua/*.lua say
// what it holds.
type windowReply struct {
	stale bool  // nothing was done: by the node's clock it is another window
	now   int64 // the node's clock, ms of Unix time
	count int64
	left  int64 // ms until the window's end; above 0 unless stale
}

// decodeWindow reads a reply to a call for the window that ends at end, in ms of
// Unix time, and reports false for one that no version of the scripts gives.
func decodeWindow(reply []int64, end int64) (windowReply, bool) {
	if len(reply) != 3 {
		return windowReply{}, false
	}
	switch {
	case reply[0] == 0 && reply[1] > 0:
		return windowReply{stale: true, now: reply[1]}, true
	case reply[0] == 1 && reply[1] <= MaxRate+1 && reply[2] > 0 && reply[2] <= MaxPeriod.Milliseconds():
		return windowReply{count: reply[1], left: reply[2], now: end - reply[2]}, true
	}
	return windowReply{}, false
}

// decide says what a count means under the limit. The counter holds every attempt,
// so the last one that is allowed is the one that brings it to the rate.
func (r windowReply) decide(limit Limit, n int64) Result {
	res := Result{
		Allowed:    r.count+peeked(n) <= limit.Rate,
		Limit:      limit,
		Count:      r.count,
		Remaining:  max(0, limit.Rate-max(0, r.count)),
		ResetAfter: time.Duration(r.left) * time.Millisecond,
	}
	if !res.Allowed {
		res.RetryAfter = res.ResetAfter
	}
	return res
}

// peeked is what the count lacks for the question that a peek asks: could one more
// have been allowed?
func peeked(n int64) int64 {
	if n == 0 {
		return 1
	}
	return 0
}
