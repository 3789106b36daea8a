package limiter

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/slotlimit/slotlimit/cluster"
)

// A countingNode is a Runner that counts fixed windows by a clock of its own, as the
// scripts do.
type countingNode struct {
	period, grace time.Duration

	mu       sync.Mutex
	skew     time.Duration // of its clock
	counters map[string]int64
	calls    []cluster.Call
	fail     func(call cluster.Call) error // before it runs
	lose     func(call cluster.Call) error // after it ran
}

func newCountingNode(period time.Duration) *countingNode {
	return &countingNode{period: period, grace: DefaultGrace, counters: map[string]int64{}}
}

func (n *countingNode) Home(context.Context, string) string { return "node" }

func (n *countingNode) RunAll(ctx context.Context, calls []cluster.Call) []cluster.Outcome {
	outcomes := make([]cluster.Outcome, len(calls))
	for i, call := range calls {
		outcomes[i].Reply, outcomes[i].Err = n.Run(ctx, call)
	}
	return outcomes
}

func (n *countingNode) Run(_ context.Context, call cluster.Call) ([]int64, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	call.Args = append([]int64{}, call.Args...)
	n.calls = append(n.calls, call)
	if n.fail != nil {
		if err := n.fail(call); err != nil {
			return nil, err
		}
	}
	reply := n.reply(call)
	if n.lose != nil {
		if err := n.lose(call); err != nil {
			return nil, err
		}
	}
	return reply, nil
}

func (n *countingNode) reply(call cluster.Call) []int64 {
	window, _ := strconv.ParseInt(call.Key[strings.LastIndexByte(call.Key, ':')+1:], 10, 64)
	end := (window + 1) * n.period.Milliseconds()
	now := time.Now().Add(n.skew).UnixMilli()
	count, exists := n.counters[call.Key]
	if now > end+n.grace.Milliseconds() {
		count, exists = 0, false
	}
	if call.Script == settleScript {
		if !exists || count < call.Args[1] {
			return []int64{0}
		}
		n.counters[call.Key] = count + call.Args[0]
		return []int64{1}
	}
	if now >= end || now < end-n.period.Milliseconds() {
		return []int64{0, now, 0}
	}
	if call.Script == resetScript {
		delete(n.counters, call.Key)
		return []int64{1, 1, end - now}
	}
	cost := costOf(call)
	if cost > 0 {
		n.counters[call.Key] = count + cost
	}
	return []int64{1, count + cost, end - now}
}

// away is a fault of every call, of the kind.
func away(kind error) func(cluster.Call) error {
	return func(call cluster.Call) error {
		return &cluster.CallError{Key: call.Key, Kind: kind, Err: errScripted}
	}
}

// called returns how many calls there were, and forgets them.
func (n *countingNode) called() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	defer func() { n.calls = nil }()
	return len(n.calls)
}

// stored returns what a counter holds.
func (n *countingNode) stored(key string) int64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.counters[key]
}

// set changes what concerns the node while calls may be under way.
func (n *countingNode) set(f func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	f()
}
