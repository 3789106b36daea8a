package limitertest

import (
	"errors"
	"math"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/slotlimit/slotlimit/cluster"
	"github.com/slotlimit/slotlimit/limiter"
)

func (s *suite) counting() {
	limit := s.hour(3)
	lim := s.limiter(limit)
	for i := int64(1); i <= 5; i++ {
		res := s.allow(lim, "alice", 1)
		want(s, "Allowed", res.Allowed, i <= 3)
		want(s, "Count", res.Count, i)
		want(s, "Remaining", res.Remaining, max(0, 3-i))
		want(s, "Limit", res.Limit, limit)
		if res.ResetAfter <= 0 || res.ResetAfter > limit.Period {
			s.Errorf("ResetAfter = %v, want within (0, %v]", res.ResetAfter, limit.Period)
		}
		if res.Allowed {
			want(s, "RetryAfter", res.RetryAfter, 0)
		} else {
			want(s, "RetryAfter", res.RetryAfter, res.ResetAfter)
		}
		want(s, "stored", s.stored(res.Key), i)
	}
}

func (s *suite) concurrency() {
	const callers, each, rate, users = 32, 20, 100, 3
	lim := s.limiter(s.hour(rate))
	var allowed [users]atomic.Int64
	var keys [users]atomic.Value
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for i := range each * users {
				res, err := lim.Allow(s.ctx(), name(i%users))
				if err != nil {
					s.Error(err)
					return
				}
				keys[i%users].Store(res.Key)
				if res.Allowed {
					allowed[i%users].Add(1)
				}
			}
		})
	}
	wg.Wait()
	if s.Failed() {
		return
	}
	for i := range users {
		want(s, "allowed of "+name(i), allowed[i].Load(), rate)
		want(s, "stored of "+name(i), s.stored(keys[i].Load().(string)), callers*each)
	}
}

func (s *suite) costs() {
	lim := s.limiter(s.hour(10))
	for _, c := range []struct {
		n       int64
		allowed bool
		count   int64
	}{
		{8, true, 8},
		{3, false, 11}, // counted all the same
		{1, false, 12},
		{10, false, 22},
	} {
		res := s.allow(lim, "alice", c.n)
		want(s, "Allowed", res.Allowed, c.allowed)
		want(s, "Count", res.Count, c.count)
	}
	want(s, "all at once", s.allow(lim, "bob", 10).Allowed, true)
	want(s, "one more", s.allow(lim, "bob", 1).Allowed, false)
}

func (s *suite) badInput() {
	lim := s.limiter(s.hour(10))
	for _, c := range []struct {
		user string
		n    int64
		want error
	}{
		{"", 1, limiter.ErrEmptyUser},
		{"", 0, limiter.ErrEmptyUser},
		{"alice", -1, limiter.ErrNegativeCost},
		{"alice", math.MinInt64, limiter.ErrNegativeCost},
		{"alice", 11, limiter.ErrCostAboveRate},
		{"alice", math.MaxInt64, limiter.ErrCostAboveRate},
	} {
		if _, err := lim.AllowN(s.ctx(), c.user, c.n); !errors.Is(err, c.want) {
			s.Errorf("AllowN(%q, %d): %v, want %v", c.user, c.n, err, c.want)
		}
	}
	if err := lim.Reset(s.ctx(), ""); !errors.Is(err, limiter.ErrEmptyUser) {
		s.Errorf("Reset of nobody: %v", err)
	}
	want(s, "Count after bad input", s.allow(lim, "alice", 0).Count, 0)
}

func (s *suite) rateZero() {
	lim := s.limiter(s.hour(0))
	for i := int64(1); i <= 2; i++ {
		res := s.allow(lim, "alice", 1)
		want(s, "Allowed", res.Allowed, false)
		want(s, "Count", res.Count, i)
		want(s, "Remaining", res.Remaining, 0)
	}
	want(s, "Allowed at cost 7", s.allow(lim, "alice", 7).Allowed, false)
	want(s, "Allowed by peek", s.allow(lim, "alice", 0).Allowed, false)
}

func (s *suite) peek() {
	lim := s.limiter(s.hour(2))
	peek := func() limiter.Result {
		s.Helper()
		res, err := lim.Peek(s.ctx(), "alice")
		if err != nil {
			s.Fatal(err)
		}
		return res
	}
	res := peek()
	want(s, "Allowed at first", res.Allowed, true)
	want(s, "Count at first", res.Count, 0)
	want(s, "Remaining at first", res.Remaining, 2)
	want(s, "stored after a peek", s.stored(res.Key), -1)
	want(s, "stored after n = 0", s.stored(s.allow(lim, "alice", 0).Key), -1)
	s.allow(lim, "alice", 1)
	want(s, "Allowed at 1 of 2", peek().Allowed, true)
	s.allow(lim, "alice", 1)
	res = peek()
	want(s, "Allowed at 2 of 2", res.Allowed, false)
	want(s, "RetryAfter at 2 of 2", res.RetryAfter, res.ResetAfter)
	want(s, "stored after peeks", s.stored(res.Key), 2)
}

func (s *suite) reset() {
	lim := s.limiter(s.hour(1))
	s.allow(lim, "alice", 1)
	s.allow(lim, "bob", 1)
	want(s, "Allowed before", s.allow(lim, "alice", 1).Allowed, false)
	for range 2 { // the second finds nothing, which is no error
		if err := lim.Reset(s.ctx(), "alice"); err != nil {
			s.Fatal(err)
		}
	}
	want(s, "Allowed after", s.allow(lim, "alice", 1).Allowed, true)
	want(s, "bob after", s.allow(lim, "bob", 1).Count, 2)
}

func (s *suite) overflow() {
	lim := s.limiter(s.hour(limiter.MaxRate))
	key := s.allow(lim, "alice", 1).Key
	if err := s.Client.IncrBy(s.ctx(), key, math.MaxInt64-3).Err(); err != nil {
		s.Fatal(err)
	}
	for range 3 {
		res := s.allow(lim, "alice", 2)
		want(s, "Allowed", res.Allowed, false)
		want(s, "Count", res.Count, limiter.MaxRate+1)
		want(s, "Remaining", res.Remaining, 0)
	}
}

func (s *suite) wrongType() {
	lim := s.limiter(s.hour(10))
	key := s.allow(lim, "alice", 0).Key
	if err := s.Client.RPush(s.ctx(), key, "x").Err(); err != nil {
		s.Fatal(err)
	}
	defer s.Client.Del(s.ctx(), key)
	for _, n := range []int64{0, 1} {
		_, err := lim.AllowN(s.ctx(), "alice", n)
		var call *cluster.CallError
		switch {
		case !errors.Is(err, limiter.ErrUnavailable) || !errors.As(err, &call):
			s.Errorf("AllowN(%d) = %v, want ErrUnavailable in a CallError", n, err)
		case call.Key != key || !strings.Contains(err.Error(), "WRONGTYPE"):
			s.Errorf("AllowN(%d) = %v, want it to name WRONGTYPE and %q", n, err, key)
		}
	}
	want(s, "length after", s.Client.LLen(s.ctx(), key).Val(), 1)
}
