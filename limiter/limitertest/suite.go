package limitertest

import (
	"context"
	"crypto/rand"
	"fmt"
	"testing"
	"time"

	"github.com/slotlimit/slotlimit/cluster"
	"github.com/slotlimit/slotlimit/limiter"
)

// A Target is the cluster under test.
type Target struct {
	// Client reaches the cluster. Required.
	Client *cluster.Client

	// Check fails the test when a key that begins with the prefix has no TTL, or
	// sits on a node that does not own its slot. It is called after each case. Nil
	// means CheckKeys through Client.
	Check func(t testing.TB, prefix string)
}

// Run runs the whole suite as subtests of t. Each has a key prefix of its own, and
// removes its keys. One empties the primaries' script caches, which costs other users
// of the cluster a moment: their clients send their scripts' text again.
func Run(t *testing.T, target Target) {
	if target.Check == nil {
		target.Check = func(t testing.TB, prefix string) { CheckKeys(t, target.Client, prefix) }
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := &suite{T: t, Target: target, prefix: "conf-" + rand.Text()[:10]}
			c.run(s)
			target.Check(t, s.prefix+":")
			removeKeys(t, target.Client, s.prefix+":")
		})
	}
}

// The cases by what they are about. Each is a promise of package limiter.
var cases = []struct {
	name string
	run  func(*suite)
}{
	{"every attempt is counted and the rate is allowed", (*suite).counting},
	{"exact under concurrency", (*suite).concurrency},
	{"costs", (*suite).costs},
	{"bad input", (*suite).badInput},
	{"rate 0 denies all", (*suite).rateZero},
	{"peek creates no key", (*suite).peek},
	{"reset", (*suite).reset},
	{"expiry is the window's end plus the grace", (*suite).expiry},
	{"users of any bytes are apart and in one slot", (*suite).users},
	{"limits of other names or periods are apart", (*suite).limits},
	{"callers' clocks do not matter", (*suite).clocks},
	{"one round trip in steady state", (*suite).roundTrips},
	{"sleeping ResetAfter is enough", (*suite).sleeping},
	{"a flushed script cache changes nothing", (*suite).flushedScripts},
	{"a key of another type is an error", (*suite).wrongType},
	{"a counter that is full stays full", (*suite).overflow},
}

// A suite is one case at work.
type suite struct {
	*testing.T
	Target
	prefix string
}

// limiter returns a limiter on the target, with keys of this case.
func (s *suite) limiter(limit limiter.Limit, opts ...limiter.Option) *limiter.Limiter {
	s.Helper()
	return s.limiterOn(s.Client, limit, opts...)
}

func (s *suite) limiterOn(client limiter.Runner, limit limiter.Limit, opts ...limiter.Option) *limiter.Limiter {
	s.Helper()
	lim, err := limiter.New(client, limit, append([]limiter.Option{limiter.WithPrefix(s.prefix)}, opts...)...)
	if err != nil {
		s.Fatal(err)
	}
	return lim
}

// allow is one attempt that must get a decision.
func (s *suite) allow(lim limiter.Allower, user string, n int64) limiter.Result {
	s.Helper()
	res, err := lim.AllowN(s.ctx(), user, n)
	if err != nil {
		s.Fatalf("AllowN(%.40q, %d): %v", user, n, err)
	}
	return res
}

func (s *suite) ctx() context.Context { return s.Context() }

// stored reads a counter as the servers hold it; -1 when there is none.
func (s *suite) stored(key string) int64 {
	s.Helper()
	if n, err := s.Client.Exists(s.ctx(), key).Result(); err != nil || n == 0 {
		if err != nil {
			s.Fatal(err)
		}
		return -1
	}
	n, err := s.Client.Get(s.ctx(), key).Int64()
	if err != nil {
		s.Fatalf("GET %q: %v", key, err)
	}
	return n
}

// hour is a limit whose window will not end while a case runs, unless the case
// begins within half a minute of the hour; then it waits for the next.
func (s *suite) hour(rate int64) limiter.Limit {
	s.Helper()
	limit := limiter.PerHour(rate)
	probe := s.limiter(limiter.Limit{Name: "probe", Rate: 1, Period: limit.Period})
	res, err := probe.Peek(s.ctx(), "probe")
	if err != nil {
		s.Fatal(err)
	}
	if res.ResetAfter < 30*time.Second {
		s.Logf("waiting %v for the next window", res.ResetAfter)
		time.Sleep(res.ResetAfter) // the clock is the nodes'
	}
	return limit
}

// want fails the case unless got equals want.
func want[T comparable](s *suite, what string, got, want T) {
	s.Helper()
	if got != want {
		s.Errorf("%s = %v, want %v", what, got, want)
	}
}

// name makes distinct users.
func name(i int) string { return fmt.Sprintf("user-%d", i) }
