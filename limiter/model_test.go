package limiter_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/slotlimit/slotlimit/cluster/clustertest"
	"github.com/slotlimit/slotlimit/limiter"
)

// A model is a fixed window as its definition reads: a count for each user and window.
type model struct {
	limit  limiter.Limit
	counts map[string]int64
}

func (m *model) key(user string, now time.Time) (string, int64) {
	window := now.UnixMilli() / m.limit.Period.Milliseconds()
	return fmt.Sprintf("%s %d", user, window), window
}

// allow is what AllowN should return at a time by the node's clock, but for the key.
func (m *model) allow(user string, n int64, now time.Time) limiter.Result {
	key, window := m.key(user, now)
	m.counts[key] += n
	count := m.counts[key]
	res := limiter.Result{
		Allowed: count <= m.limit.Rate, Limit: m.limit, Count: count, Remaining: max(0, m.limit.Rate-count),
		ResetAfter: time.UnixMilli((window + 1) * m.limit.Period.Milliseconds()).Sub(now), Window: window,
	}
	if n == 0 {
		res.Allowed = count < m.limit.Rate
	}
	if !res.Allowed {
		res.RetryAfter = res.ResetAfter
	}
	return res
}

// Whatever is asked in whatever order while time passes, by callers whose clocks are
// right, ahead and behind: the script and its decoding agree with the model.
func TestScriptAgainstModel(t *testing.T) {
	c := start(t, clustertest.WithClock(stopped))
	for seed := range uint64(6) {
		random := rand.New(rand.NewPCG(seed, 0))
		limit := limiter.Limit{Name: fmt.Sprint("model-", seed), Rate: random.Int64N(6), Period: time.Duration(1+random.Int64N(5000)) * time.Millisecond}
		m := model{limit: limit, counts: map[string]int64{}}
		var callers []*limiter.Limiter
		for _, skew := range []time.Duration{0, time.Hour, -time.Hour} {
			callers = append(callers, newLimiter(t, c, limit, limiter.WithClock(func() time.Time { return midday.Add(skew) })))
		}
		for step := range 400 {
			user := fmt.Sprint("user-", random.IntN(4))
			lim := callers[random.IntN(len(callers))]
			now := c.Now(0)
			switch random.IntN(10) {
			case 0:
				c.Advance(time.Duration(random.Int64N(limit.Period.Milliseconds()+2)) * time.Millisecond)
			case 1:
				key, _ := m.key(user, now)
				delete(m.counts, key)
				if err := lim.Reset(t.Context(), user); err != nil {
					t.Fatal(err)
				}
			default:
				n := random.Int64N(max(1, limit.Rate) + 1)
				want := m.allow(user, n, now)
				got, err := lim.AllowN(t.Context(), user, n)
				if got.Key = ""; err != nil || got != want {
					t.Fatalf("seed %d, step %d: %v, AllowN(%s, %d) = %+v, %v\nwant %+v", seed, step, limit, user, n, got, err, want)
				}
			}
		}
	}
}
