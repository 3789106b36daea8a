package main

import (
	"context"
	"time"

	"github.com/slotlimit/slotlimit/keys"
)

// A quota is the limit that all limiters of a run apply: rate attempts of one user in one
// period. Where an algorithm has a burst, it is the rate.
type quota struct {
	rate   int64
	period time.Duration
}

// A verdict is what became of one attempt. With an error there is no decision.
type verdict struct {
	allowed bool
	err     error
}

// A rival is a limiter under measurement. Any number of goroutines may use one.
type rival interface {
	// decide decides on one attempt of each of the users, and writes what became of it to the
	// same place of verdicts, which is as long.
	decide(ctx context.Context, users []string, verdicts []verdict)
}

// A single is a limiter that is asked for one user at a time.
type single func(ctx context.Context, user string) (allowed bool, err error)

func (s single) decide(ctx context.Context, users []string, verdicts []verdict) {
	for i, user := range users {
		verdicts[i].allowed, verdicts[i].err = s(ctx, user)
	}
}

// A contender is a limiter that can be chosen, and what has to be known of it to measure
// it and to check its counts.
type contender struct {
	name   string
	module string // that it comes from, for its version; "" if it is written here
	about  string

	batch      int // decisions in one call; 0 is 1
	goroutines int // that call it; 0: as many as the row of the table says

	// open makes the limiter.
	open func(ctx context.Context, t *target, q quota) (rival, error)

	// keys names what Redis holds of a user in the windows with these numbers of Unix time.
	keys func(user string, q quota, windows []int64) []string

	// counts says that these are counters of all attempts, those denied included. An
	// algorithm that keeps a time instead does not say how many attempts there were.
	counts bool
}

// The names that others are compared with.
const (
	ours      = "slotlimit"
	yardstick = "redis_rate"
	bare      = "evalsha"
	ceiling   = "pipeline"
)

// contenders are all limiters, in the order of the table.
var contenders = []contender{
	contenderSlotlimit, contenderRedisRate, contenderUlule, contenderThrottled, contenderEvalsha, contenderPipeline,
}

func names(all []contender) []string {
	var names []string
	for _, c := range all {
		names = append(names, c.name)
	}
	return names
}

// chosen returns the contenders with these names, in the order of the table.
func chosen(all []contender, names []string) []contender {
	var some []contender
	for _, c := range all {
		for _, name := range names {
			if c.name == name {
				some = append(some, c)
			}
		}
	}
	return some
}

// workers is how many goroutines call the contender in a row of the table.
func (c contender) workers(row int) int {
	if c.goroutines > 0 {
		return c.goroutines
	}
	return row
}

// each is how many decisions one call is for.
func (c contender) each() int { return max(c.batch, 1) }

// windows returns the numbers of the windows that there were from one time to another. A
// server's clock may be ahead of this process's or behind, by a minute at most.
func windows(q quota, from, to time.Time) []int64 {
	const skew = time.Minute
	var numbers []int64
	last := keys.WindowNumber(to.Add(skew).UnixMilli(), q.period)
	for n := keys.WindowNumber(from.Add(-skew).UnixMilli(), q.period); n <= last; n++ {
		numbers = append(numbers, n)
	}
	return numbers
}

// oneKey is keys of a contender that has one key for each user, by its prefix.
func oneKey(prefix string) func(string, quota, []int64) []string {
	return func(user string, _ quota, _ []int64) []string { return []string{prefix + user} }
}
