package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// A ledger knows for one limiter what each user's counter has to hold: at least the
// decisions that were given, and at most those and the attempts that got an error.
type ledger struct {
	contender contender
	quota     quota
	rival     rival
	names     []string // of the users, by index
	decided   []int64  // by user
	unknown   []int64  // by user
	touched   int      // the users below have been asked for at least once
	began     time.Time
}

func newLedger(c contender, q quota, r rival, names []string) *ledger {
	return &ledger{
		contender: c, quota: q, rival: r, names: names,
		decided: make([]int64, len(names)), unknown: make([]int64, len(names)), began: time.Now(),
	}
}

// enter books all that a crew did, by drawing its users again. It returns how many different users
// those were. The crew does not run, and is not used afterwards.
func (l *ledger) enter(c *crew) (users int) {
	seen := make(map[int]struct{})
	for i, w := range c.workers {
		s := c.draw(i)
		for range w.drawn {
			user := s.next()
			l.decided[user]++
			seen[user] = struct{}{}
		}
		for _, user := range w.failed {
			l.decided[user]--
			l.unknown[user]++
		}
	}
	return len(seen)
}

// touchers is how many goroutines ask for the users in turn.
const touchers = 256

// touch asks for each of the first n users once, unless that was done before: what is measured
// is a decision on a user whose counter exists, however many users there are and however short
// the measuring is. An error that an attempt got is returned, and no reason to stop.
func (l *ledger) touch(ctx context.Context, n int) error {
	each := l.contender.each()
	var next atomic.Int64
	next.Store(int64(l.touched))
	errs := make([]error, touchers)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() {
			verdicts := make([]verdict, each)
			for ctx.Err() == nil {
				end := int(next.Add(int64(each)))
				first := end - each
				if end = min(end, n); first >= end {
					return
				}
				l.rival.decide(context.WithoutCancel(ctx), l.names[first:end], verdicts[:end-first])
				for j, v := range verdicts[:end-first] {
					if v.err != nil { // nobody else asks for this user
						l.unknown[first+j]++
						errs[i] = v.err
					} else {
						l.decided[first+j]++
					}
				}
			}
		})
	}
	wg.Wait()
	l.touched = max(l.touched, n)
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return ctx.Err()
}

// audit reads the counters of all users that were asked for, and says what is wrong with
// them, or nothing. An error means that they could not be read. Losses are let pass if lossy: a
// replica took over, which may lack what the primary had.
func (l *ledger) audit(ctx context.Context, t *target, lossy bool) (wrong string, err error) {
	if !l.contender.counts {
		return "", nil
	}
	stored, err := l.stored(ctx, t)
	if err != nil {
		return "", fmt.Errorf("read the counters of %s: %w", l.contender.name, err)
	}
	return l.compare(stored, lossy), nil
}

// compare says what is wrong with the counters, by user.
func (l *ledger) compare(stored []int64, lossy bool) string {
	bad, first, all, decided, unknown := 0, 0, int64(0), int64(0), int64(0)
	for i, n := range stored {
		all, decided, unknown = all+n, decided+l.decided[i], unknown+l.unknown[i]
		if n < l.decided[i] && !lossy || n > l.decided[i]+l.unknown[i] {
			if bad == 0 {
				first = i
			}
			bad++
		}
	}
	if bad == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d counters are wrong, such as that of %q: stored %d, decisions %d, errors %d; in all stored %d, decisions %d, errors %d",
		bad, len(stored), l.names[first], stored[first], l.decided[first], l.unknown[first], all, decided, unknown)
}

// page is how many counters are read in one pipeline.
const page = 1000

// stored reads the counters, by user.
func (l *ledger) stored(ctx context.Context, t *target) ([]int64, error) {
	windows := windows(l.quota, l.began, time.Now())
	stored := make([]int64, l.touched)
	for first := 0; first < l.touched; first += page {
		last := min(first+page, l.touched)
		pipe := t.audit.Pipeline()
		cmds := make([][]*redis.StringCmd, last-first)
		for i := range cmds {
			for _, key := range l.contender.keys(l.names[first+i], l.quota, windows) {
				cmds[i] = append(cmds[i], pipe.Get(ctx, key))
			}
		}
		if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, redis.Nil) {
			return nil, err
		}
		for i := range cmds {
			for _, cmd := range cmds[i] {
				n, err := counter(cmd)
				if err != nil {
					return nil, err
				}
				stored[first+i] += n
			}
		}
	}
	return stored, nil
}

// counter decodes a counter; one that is not there holds 0.
func counter(cmd *redis.StringCmd) (int64, error) {
	text, err := cmd.Result()
	if errors.Is(err, redis.Nil) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("a counter holds %q", text)
	}
	return n, nil
}
