package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/slotlimit/slotlimit/keys"
)

// scant is the limit under which correctness is tried: what comes back to a user while that
// takes is nothing.
var scant = quota{rate: 50, period: 24 * time.Hour}

// A finding is what one check of one limiter came to.
type finding struct {
	Limiter string `json:"limiter"`
	Check   string `json:"check"`
	OK      bool   `json:"ok"`
	Detail  string `json:"detail"`
}

// Of the attempts of one user, as many are made at one time.
const (
	rivalry    = 16
	attempts   = 400 // of one user, eight times the limit
	oddRivalry = 4
	oddTries   = 100
)

// oddUsers are users whose bytes have a meaning in a Redis key, or hold together what
// parts two of them. Each ends in the run's tag.
func oddUsers(tag string) []string {
	users := []string{"}", "{", "{}", "}{", "a{b", "a}b", "{pair}1", "{pair}2", "a}1", "a}2", "%7D", "line\r\nend\x00", "\xff\xfe"}
	for i := range users {
		users[i] += tag
	}
	return users
}

// correctness tries every chosen limiter.
func (t *trial) correctness(ctx context.Context) ([]finding, error) {
	var all []finding
	for _, c := range t.contenders {
		found, err := t.try(ctx, c)
		if ctx.Err() != nil {
			return nil, errInterrupted
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.name, err)
		}
		all = append(all, found...)
	}
	return all, nil
}

// try tries one limiter: with many attempts of one user at one time, of which as many as the limit
// says must pass, and with odd users.
func (t *trial) try(ctx context.Context, c contender) ([]finding, error) {
	r, err := c.open(ctx, t.target, scant)
	if err != nil {
		return nil, err
	}
	one := steady(func(suffix string) tried {
		return tryUser(ctx, r, "one"+suffix+t.tag, attempts, rivalry, c.each())
	})
	found := []finding{{c.name, "limit", one.wrong() == "", one.String()}}

	odd := finding{c.name, "odd users", true, ""}
	users := oddUsers(t.tag)
	failed := 0
	for _, u := range users {
		got := steady(func(suffix string) tried {
			return tryUser(ctx, r, u+suffix, oddTries, oddRivalry, c.each())
		})
		failed += got.failed
		if why := got.wrong(); why != "" && odd.OK {
			odd.OK, odd.Detail = false, fmt.Sprintf("user %q: %v", u, got)
		}
	}
	if odd.OK {
		odd.Detail = fmt.Sprintf("%d users such as %q: each was allowed %d of %d attempts", len(users), users[0], scant.rate, oddTries)
		if failed > 0 {
			odd.Detail += fmt.Sprintf(", but for %d errors", failed)
		}
	}
	return append(found, odd), nil
}

// steady tries again, for another user, if a window of the limit ended meanwhile.
func steady(try func(suffix string) tried) tried {
	window := func() int64 { return keys.WindowNumber(time.Now().UnixMilli(), scant.period) }
	before := window()
	got := try("")
	if window() != before {
		got = try("again")
	}
	return got
}

// tried is what became of the attempts of one user.
type tried struct {
	allowed, denied, failed int
	err                     error // one of those that failed
}

// tryUser makes attempts of one user, by so many goroutines at one time.
func tryUser(ctx context.Context, r rival, user string, attempts, goroutines, each int) tried {
	each = min(each, attempts/goroutines) // of one call
	calls := make(chan struct{}, attempts/each)
	for range attempts / each {
		calls <- struct{}{}
	}
	close(calls)
	users := make([]string, each)
	for i := range users {
		users[i] = user
	}
	var mu sync.Mutex
	var got tried
	var wg sync.WaitGroup
	for range goroutines {
		wg.Go(func() {
			verdicts := make([]verdict, each)
			for range calls {
				r.decide(ctx, users, verdicts)
				mu.Lock()
				got.add(verdicts)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return got
}

func (t *tried) add(verdicts []verdict) {
	for _, v := range verdicts {
		switch {
		case v.err != nil:
			t.failed++
			t.err = v.err
		case v.allowed:
			t.allowed++
		default:
			t.denied++
		}
	}
}

// wrong says what is wrong, or nothing. An attempt that got an error may have been counted
// or not, so it may be missing among those that were allowed.
func (t tried) wrong() string {
	limit := int(scant.rate)
	switch {
	case t.allowed > limit:
		return fmt.Sprintf("%d too many were allowed", t.allowed-limit)
	case t.allowed == 0:
		return "none was allowed"
	case t.allowed+t.failed < limit:
		return fmt.Sprintf("%d too few were allowed", limit-t.allowed-t.failed)
	}
	return ""
}

func (t tried) String() string {
	text := fmt.Sprintf("of %d attempts, limit %d: allowed %d, denied %d", t.allowed+t.denied+t.failed, scant.rate, t.allowed, t.denied)
	if t.failed > 0 {
		text += fmt.Sprintf(", %d errors (%v)", t.failed, t.err)
	}
	if why := t.wrong(); why != "" {
		text += ": " + why
	}
	return text
}
