package main

import (
	"context"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/slotlimit/slotlimit/cluster/clustertest"
)

// A naive limiter counts with INCR alone. As made by newNaive it is right; each test replaces
// a part by one that is wrong.
type naive struct {
	quota
	client *redis.ClusterClient
	key    func(user string) string
	decide func(ctx context.Context, n *naive, key string) (bool, error)
}

func naiveKey(user string) string { return "naive:{" + user + "}" }

func count(ctx context.Context, n *naive, key string) (bool, error) {
	count, err := n.client.Incr(ctx, key).Result()
	return count <= n.rate, err
}

// asOurs has a naive limiter, spoilt or not, stand in for this module's.
func asOurs(spoil func(*naive)) contender {
	return contender{
		name: ours, counts: true,
		open: func(_ context.Context, t *target, q quota) (rival, error) {
			n := &naive{quota: q, client: t.others, key: naiveKey, decide: count}
			spoil(n)
			return single(func(ctx context.Context, user string) (bool, error) { return n.decide(ctx, n, n.key(user)) }), nil
		},
		keys: func(user string, _ quota, _ []int64) []string { return []string{naiveKey(user)} },
	}
}

// meeting lets callers wait until so many of them have met, and lets later ones pass.
func meeting(callers int) func() {
	var mu sync.Mutex
	all := make(chan struct{})
	return func() {
		mu.Lock()
		if callers--; callers == 0 {
			close(all)
		}
		mu.Unlock()
		<-all
	}
}

// wrongs are limiters with the mistakes that people make, and what must be said of them.
var wrongs = []struct {
	name  string
	spoil func(*naive)
	want  string // a line, as a regular expression; empty if it counted right
}{
	{"nothing wrong", func(*naive) {}, ""},
	{
		// Sixteen read the count before the first of them has written.
		"GET then INCR",
		func(n *naive) {
			if n.quota == ample {
				return
			}
			meet, calls := meeting(rivalry), 0
			var mu sync.Mutex
			n.decide = func(ctx context.Context, n *naive, key string) (bool, error) {
				count, err := n.client.Get(ctx, key).Int64()
				if err != nil && err != redis.Nil {
					return false, err
				}
				mu.Lock()
				calls++
				first := calls <= rivalry
				mu.Unlock()
				if first {
					meet()
				}
				return count < n.rate, n.client.Incr(ctx, key).Err()
			}
		},
		`limit: of 400 attempts, limit 50: allowed (5[1-9]|6\d), denied 3\d\d: \d+ too many were allowed`,
	},
	{
		// Everything from a brace on is cut off, so "a}1" and "a}2" are one user. Users end in the tag.
		"users cut at a brace",
		func(n *naive) {
			n.key = func(user string) string {
				before, _, _ := strings.Cut(user, "}")
				return naiveKey(before)
			}
		},
		`odd users: user "\S+": of 100 attempts, limit 50: allowed 0, denied 100: none was allowed`,
	},
	{
		"a sending twice",
		func(n *naive) {
			n.decide = func(ctx context.Context, n *naive, key string) (bool, error) {
				if n.quota == ample {
					_, _ = count(ctx, n, key)
				}
				return count(ctx, n, key)
			}
		},
		`round 1, one hot user, 2 goroutines: 1 of 1 counters are wrong, such as that of "\S+": stored (\d+), decisions (\d+), errors 0; in all stored`,
	},
	{
		"answers without counting",
		func(n *naive) {
			n.decide = func(ctx context.Context, n *naive, key string) (bool, error) {
				if n.quota == ample {
					return true, nil
				}
				return count(ctx, n, key)
			}
		},
		`round 1, one hot user, 2 goroutines: 1 of 1 counters are wrong, such as that of "\S+": stored 0, decisions`,
	},
	{
		"denies below the limit",
		func(n *naive) {
			n.decide = func(ctx context.Context, n *naive, key string) (bool, error) {
				allowed, err := count(ctx, n, key)
				return allowed && n.quota != ample, err
			}
		},
		`round 1, one hot user, 2 goroutines: (\d+) of \d+ decisions are denials, under a limit that nobody reached`,
	},
	{
		"a limit too low",
		func(n *naive) { n.rate -= 3 },
		`limit: of 400 attempts, limit 50: allowed 47, denied 353: 3 too few were allowed`,
	},
}

// A limiter that is wrong on purpose is found out, and the exit status says so.
func TestWrong(t *testing.T) {
	for _, w := range wrongs {
		t.Run(w.name, func(t *testing.T) {
			c := clustertest.Start(t)
			args := []string{"-addrs", c.Addr(0), "-users", "9", "-goroutines", "2", "-rounds", "1", "-duration", "10ms", "-workload", "hot"}
			status, stdout, stderr := runWith(t, []contender{asOurs(w.spoil)}, args...)
			if w.want == "" {
				if status != exitOK || !strings.Contains(stdout, "slotlimit   counted right") {
					t.Errorf("exit status %d: %s\n%s", status, stderr, stdout)
				}
				return
			}
			if status != exitFailed || !strings.Contains(stdout, "slotlimit   COUNTED WRONG") {
				t.Errorf("exit status %d: %s", status, stderr)
			}
			if !regexp.MustCompile(w.want).MatchString(stdout) {
				t.Errorf("no %s in\n%s", w.want, stdout)
			}
		})
	}
}

// Errors may hide attempts that were counted: they excuse what is missing, but not what is too
// much, and not that nobody was allowed.
func TestTried(t *testing.T) {
	for _, test := range []struct {
		tried tried
		want  string
	}{
		{tried{allowed: 50, denied: 350}, ""},
		{tried{allowed: 51, denied: 349}, "1 too many were allowed"},
		{tried{allowed: 49, denied: 351}, "1 too few were allowed"},
		{tried{allowed: 45, denied: 350, failed: 5, err: errNo}, ""},
		{tried{allowed: 44, denied: 350, failed: 5, err: errNo}, "1 too few were allowed"},
		{tried{allowed: 51, failed: 349, err: errNo}, "1 too many were allowed"},
		{tried{failed: 400, err: errNo}, "none was allowed"},
	} {
		if got := test.tried.wrong(); got != test.want {
			t.Errorf("%v: %q, want %q", test.tried, got, test.want)
		}
	}
}
