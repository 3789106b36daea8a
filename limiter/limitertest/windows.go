package limitertest

import (
	"context"
	"strings"
	"sync/atomic"
	"time"

	"github.com/slotlimit/slotlimit/cluster"
	"github.com/slotlimit/slotlimit/keys"
	"github.com/slotlimit/slotlimit/limiter"
)

func (s *suite) expiry() {
	const grace = 7 * time.Second
	limit := s.hour(10)
	lim := s.limiter(limit, limiter.WithGrace(grace))
	res := s.allow(lim, "alice", 1)
	end := time.UnixMilli((res.Window + 1) * limit.Period.Milliseconds())
	at := func() int64 {
		at := s.Client.PExpireTime(s.ctx(), res.Key).Val()
		if at < 0 {
			return int64(at) // -1 is no TTL, -2 no key; go-redis gives them no unit
		}
		return at.Milliseconds()
	}
	due := end.Add(grace).UnixMilli()
	want(s, "expiry of a new counter", at(), due)
	s.allow(lim, "alice", 1)
	want(s, "expiry after another attempt", at(), due)

	if err := s.Client.Persist(s.ctx(), res.Key).Err(); err != nil {
		s.Fatal(err)
	}
	s.allow(lim, "alice", 0)
	want(s, "expiry after a peek, which writes nothing", at(), -1)
	want(s, "Count after the TTL was lost", s.allow(lim, "alice", 1).Count, 3)
	want(s, "expiry of a counter that had lost it", at(), due)

	if err := s.Client.PExpireAt(s.ctx(), res.Key, end.Add(48*time.Hour)).Err(); err != nil {
		s.Fatal(err)
	}
	want(s, "Count after the TTL was lengthened", s.allow(lim, "alice", 1).Count, 4)
	want(s, "expiry of a counter that would have outlived its use", at(), due)

	// Another grace on the same counter changes nothing.
	want(s, "Count with another grace", s.allow(s.limiter(limit), "alice", 1).Count, 5)
	want(s, "expiry after another grace", at(), due)
}

func (s *suite) users() {
	lim, named := s.limiter(s.hour(1)), s.limiter(limiter.Limit{Name: "other", Rate: 1, Period: time.Hour})
	long := strings.Repeat("x", 64<<10)
	for _, user := range []string{
		"}", "{", "{}", "{a}b", "a}b{c", "%7B", "%7b", "a:b", "a", "b", " ", "\x00", "\xff\xfe", "é",
		long + "1", long + "2", strings.Repeat("y", 128), strings.Repeat("y", 129), "a\r\nDEL b",
	} {
		res, other := s.allow(lim, user, 1), s.allow(named, user, 1)
		if res.Count != 1 || other.Count != 1 {
			s.Errorf("user %.20q shares a counter: counts %d and %d", user, res.Count, other.Count)
		}
		if keys.Slot(res.Key) != keys.Slot(other.Key) {
			s.Errorf("user %.20q is in two slots, %d and %d", user, keys.Slot(res.Key), keys.Slot(other.Key))
		}
		if slot := s.Client.ClusterKeySlot(s.ctx(), res.Key); slot.Err() == nil {
			want(s, "slot by CLUSTER KEYSLOT", int64(keys.Slot(res.Key)), slot.Val())
		}
	}
}

func (s *suite) limits() {
	const day = 24 * time.Hour
	seen := map[string]limiter.Limit{}
	for _, limit := range []limiter.Limit{
		s.hour(5), limiter.PerSecond(5), limiter.PerMinute(5), limiter.PerDay(5),
		limiter.Per(5, day+4*time.Second), limiter.Per(5, day+time.Millisecond), limiter.Per(5, 48*time.Hour),
		limiter.Per(5, 300*day), limiter.Per(5, 301*day), limiter.Per(5, 366*day),
		{Name: "a", Rate: 5, Period: day}, {Name: "b", Rate: 5, Period: day},
		{Name: "a", Rate: 5, Period: day + 4*time.Second}, {Name: "1d", Rate: 5, Period: day},
	} {
		res := s.allow(s.limiter(limit), "alice", 1)
		if other, ok := seen[res.Key]; ok || res.Count != 1 {
			s.Errorf("%v shares %q with %v: count %d", limit, res.Key, other, res.Count)
		}
		seen[res.Key] = limit
	}
	// The rate is no part of it: a raised limit sees what was counted.
	want(s, "Count at another rate", s.allow(s.limiter(limiter.PerDay(50)), "alice", 1).Count, 2)
}

// skewed returns a clock that is wrong.
func skewed(by time.Duration) limiter.Option {
	return limiter.WithClock(func() time.Time { return time.Now().Add(by) })
}

func (s *suite) clocks() {
	limit := s.hour(4)
	count := int64(0)
	for _, by := range []time.Duration{0, time.Hour, -time.Hour, 3650 * 24 * time.Hour, 61 * time.Minute} {
		lim := s.limiter(limit, skewed(by))
		for range 2 {
			count++
			res := s.allow(lim, "alice", 1)
			want(s, "Count with a clock off by "+by.String(), res.Count, count)
			want(s, "Allowed with a clock off by "+by.String(), res.Allowed, count <= 4)
		}
	}
}

// A trips counts the calls that pass through it.
type trips struct {
	*cluster.Client
	n atomic.Int64
}

func (t *trips) Run(ctx context.Context, call cluster.Call) ([]int64, error) {
	t.n.Add(1)
	return t.Client.Run(ctx, call)
}

func (s *suite) roundTrips() {
	const users = 60 // enough to meet every primary
	limit := s.hour(1000)
	for _, by := range []time.Duration{0, -time.Hour, time.Hour} {
		t := &trips{Client: s.Client}
		lim := s.limiterOn(t, limit, skewed(by))
		for i := range users {
			s.allow(lim, name(i), 1)
		}
		learned := t.n.Load() - users
		t.n.Store(0)
		for i := range users {
			s.allow(lim, name(i), 1)
		}
		want(s, "calls of 60 decisions with a clock off by "+by.String(), t.n.Load(), users)
		s.Logf("clock off by %v: %d more calls to learn the nodes' clocks", by, learned)
	}
}

func (s *suite) sleeping() {
	lim := s.limiter(limiter.Per(2, 250*time.Millisecond))
	var last limiter.Result
	for range 4 {
		denied := s.allow(lim, "alice", 1)
		for i := 0; denied.Allowed; i++ {
			if i == 50 {
				s.Fatal("50 attempts, and none denied: windows pass faster than attempts")
			}
			denied = s.allow(lim, "alice", 1)
		}
		if denied.RetryAfter <= 0 || denied.RetryAfter > 250*time.Millisecond {
			s.Fatalf("RetryAfter = %v, want within (0, 250ms]", denied.RetryAfter)
		}
		time.Sleep(denied.RetryAfter) // what a caller does, and all that the case is about
		res := s.allow(lim, "alice", 1)
		want(s, "Allowed after the sleep", res.Allowed, true)
		if res.Window <= denied.Window || res.Window == last.Window {
			s.Errorf("window %d after %d", res.Window, denied.Window)
		}
		last = res
	}
}

func (s *suite) flushedScripts() {
	lim := s.limiter(s.hour(1000))
	for i := int64(1); i <= 5; i++ {
		s.flushScripts()
		for u := range 9 {
			want(s, "Count", s.allow(lim, name(u), 1).Count, i)
		}
	}
}
