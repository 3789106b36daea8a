package limiter

import (
	_ "embed"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/slotlimit/slotlimit/cluster"
	"github.com/slotlimit/slotlimit/keys"
)

var (
	//go:embed lua/fixed_window.lua
	fixedWindowText string
	//go:embed lua/reset.lua
	resetText string

	//go:embed lua/settle.lua
	settleText string

	fixedWindowScript = cluster.NewScript(fixedWindowText)
	resetScript       = cluster.NewScript(resetText)
	settleScript      = cluster.NewScript(settleText)
)

// Scripts returns the scripts that limiters run, for [cluster.Client.Preload].
func Scripts() []*cluster.Script {
	return []*cluster.Script{fixedWindowScript, exactlyOnceScript, resetScript, settleScript}
}

// A fixedWindow counts every attempt in the window that it is made in, allowed or
// denied. Costs can be summed: the counter moves by all of them, so it stood, after each
// attempt, at its last value less the costs of those that came later.
type fixedWindow struct {
	limit  Limit
	layout keys.Layout
	grace  time.Duration

	constants *cluster.Constants // period and grace, which the script's ARGV begins with

	// present is the window of the latest key made: nearly all are of the same.
	present atomic.Pointer[windowName]
}

// A windowName is what the keys of a window end with.
type windowName struct {
	number int64
	text   string
}

// name returns what the keys of the window end with.
func (f *fixedWindow) name(number int64) string {
	w := f.present.Load()
	if w == nil || w.number != number {
		w = &windowName{number, string(keys.AppendWindow(nil, f.limit.Name, f.limit.Period, number))}
		f.present.Store(w)
	}
	return w.text
}

func newFixedWindow(limit Limit, layout keys.Layout, grace time.Duration) *fixedWindow {
	constants := cluster.NewConstants(fmt.Sprintf("%d %d", limit.Period.Milliseconds(), grace.Milliseconds()))
	return &fixedWindow{limit: limit, layout: layout, grace: grace, constants: constants}
}

func (f *fixedWindow) counter(tag string, milli int64) counter {
	number := keys.WindowNumber(milli, f.limit.Period)
	var buf [128]byte
	key := append(f.layout.AppendUser(buf[:0], tag), f.name(number)...)
	return counter{key: string(key), window: number, end: (number + 1) * f.limit.Period.Milliseconds(), guess: milli}
}

// call encodes as the scripts' headers say.
func (f *fixedWindow) call(e errand, at counter, cost int64, args []int64) cluster.Call {
	switch e {
	case reset:
		return cluster.Call{Script: resetScript, Key: at.key, Args: append(args, at.end, f.limit.Period.Milliseconds())}
	case settlement:
		return cluster.Call{Script: settleScript, Key: at.key, Args: append(args, cost, at.floor)}
	}
	args = append(args, f.low(at))
	if cost != 1 {
		args = append(args, cost)
	}
	return cluster.Call{Script: fixedWindowScript, Key: at.key, Constants: f.constants, Args: args}
}

// spread is how many TTLs of a counter, in ms, the script takes for a sign that the
// caller is right about the window. It then needs not ask for the time.
const spread = 1000

// low is what the TTL must be above, by 1 to spread: those of them are around the TTL
// that the guess says, and none is of another window. A window that is shorter than
// they are has none.
func (f *fixedWindow) low(at counter) int64 {
	period, grace := f.limit.Period.Milliseconds(), f.grace.Milliseconds()
	if period < spread {
		return MaxRate
	}
	return min(max(at.end+grace-at.guess-spread/2, grace), grace+period-spread)
}

func (f *fixedWindow) read(e errand, at counter, reply []int64) (answer, bool) {
	switch {
	case e == settlement && len(reply) == 1:
		return answer{stale: reply[0] == 0}, reply[0] == 0 || reply[0] == 1
	case len(reply) == 1:
		count, above := reply[0]>>10, reply[0]&1023
		left := f.low(at) + above - f.grace.Milliseconds()
		ok := 1 <= above && above <= spread && left <= f.limit.Period.Milliseconds()
		return answer{count: count, left: left, now: at.end - left}, ok
	case len(reply) != 3:
		return answer{}, false
	case reply[0] == 0 && reply[1] > 0:
		return answer{stale: true, now: reply[1]}, true
	case reply[0] == 1 && reply[1] <= MaxRate+1 && reply[2] > 0 && reply[2] <= MaxPeriod.Milliseconds():
		return answer{count: reply[1], left: reply[2], now: at.end - reply[2]}, true
	}
	return answer{}, false
}

// deal says what the count means under the limit. The counter holds every attempt, so
// the last one that is allowed is the one that brings it to the rate.
func (f *fixedWindow) deal(a answer, s share) Result {
	count := a.count
	if count <= MaxRate {
		count -= s.total - s.before - s.cost
	} // else it is 2^53 or more, nobody knows how much, and after each attempt is taken to be
	res := Result{
		Allowed:    count+peeked(s.cost) <= f.limit.Rate,
		Limit:      f.limit,
		Count:      count,
		Remaining:  max(0, f.limit.Rate-max(0, count)),
		ResetAfter: time.Duration(a.left) * time.Millisecond,
	}
	if !res.Allowed {
		res.RetryAfter = res.ResetAfter
	}
	return res
}

// denies is true once the rate is reached: the count only grows until the window's end.
func (f *fixedWindow) denies(a answer) (left int64, ok bool) {
	return a.left, a.count >= f.limit.Rate
}

// peeked is what the count lacks for the question that a peek asks: could one more
// have been allowed?
func peeked(cost int64) int64 {
	if cost == 0 {
		return 1
	}
	return 0
}
