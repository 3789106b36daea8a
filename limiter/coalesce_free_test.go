package limiter_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/slotlimit/slotlimit/cluster"
	"github.com/slotlimit/slotlimit/cluster/clustertest"
	"github.com/slotlimit/slotlimit/limiter"
)

// A told is what one caller was told: its cost, and the count after it.
type told struct{ n, count int64 }

// A history notes what the callers of a limiter were told, to hold it against what the
// nodes have: there must be an order of single attempts that explains it.
type history struct {
	mu     sync.Mutex
	told   map[string][]told // by key
	unsure map[string]int64  // costs that may be counted, by key
	others []error
}

func newHistory() *history {
	return &history{told: map[string][]told{}, unsure: map[string]int64{}}
}

func (h *history) add(n int64, res limiter.Result, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	call, _ := errors.AsType[*cluster.CallError](err)
	switch {
	case err == nil:
		h.told[res.Key] = append(h.told[res.Key], told{n, res.Count})
		if res.Allowed != (res.Count+max(0, 1-n) <= res.Limit.Rate) {
			h.others = append(h.others, fmt.Errorf("cost %d: %+v", n, res))
		}
	case call == nil:
		h.others = append(h.others, err)
	case errors.Is(err, limiter.ErrAmbiguous):
		h.unsure[call.Key] += n
	}
}

// addMany makes several attempts in one call. The first and the last are of one user.
func (h *history) addMany(ctx context.Context, lim *limiter.Limiter, items []limiter.Attempt) {
	verdicts := lim.AllowMany(ctx, items)
	for i, v := range verdicts {
		h.add(items[i].N, v.Result, v.Err)
	}
	last := len(items) - 1
	if a, b := verdicts[0], verdicts[last]; a.Err == nil && b.Err == nil && a.Count > b.Count-items[last].N {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.others = append(h.others, fmt.Errorf("counts %d and %d of one user in one call", a.Count, b.Count))
	}
}

// check fails the test unless the attempts of each counter fit one after the other into
// what is stored, with no more between them than callers are unsure of.
func (h *history) check(t *testing.T, stored func(key string) int64) {
	t.Helper()
	for _, err := range h.others {
		t.Error(err)
	}
	for key, all := range h.told {
		slices.SortFunc(all, func(a, b told) int { return cmp.Or(cmp.Compare(a.count, b.count), cmp.Compare(b.n, a.n)) })
		end, acked := int64(0), int64(0)
		for _, a := range all {
			if a.n > 0 && a.count-a.n < end || a.n == 0 && a.count < end {
				t.Fatalf("%s: an attempt of cost %d was told %d, and the one before it %d", key, a.n, a.count, end)
			}
			end = a.count
			acked += a.n
		}
		if n := stored(key); n < end || n < acked || n > acked+h.unsure[key] {
			t.Errorf("%s: %d stored, %d acknowledged up to %d, %d unsure", key, n, acked, end, h.unsure[key])
		}
	}
}

// Many goroutines, few users, mixed costs, callers that give up, replies that are lost:
// what the callers were told is what single attempts would have been.
func TestCoalescingFreeRunning(t *testing.T) {
	for name, opts := range map[string][]limiter.Option{"coalescing": nil, "without": {limiter.WithoutCoalescing()}} {
		t.Run(name, func(t *testing.T) {
			c := start(t, clustertest.WithClock(stopped))
			client := open(t, c.Addrs())
			lim, err := limiter.New(client, limiter.PerMinute(300), append(opts, limiter.WithClock(stopped))...)
			if err != nil {
				t.Fatal(err)
			}
			c.ResetCounts()
			c.LoseReplies(clustertest.On(clustertest.AllNodes, "EVALSHA"), 5, clustertest.Cut)
			h := newHistory()
			var wg sync.WaitGroup
			for g := range uint64(32) {
				wg.Go(func() {
					random := rand.New(rand.NewPCG(g, 0))
					for range 100 {
						ctx, cancel := t.Context(), context.CancelFunc(func() {})
						if random.IntN(5) == 0 {
							ctx, cancel = context.WithTimeout(ctx, time.Duration(random.IntN(2000))*time.Microsecond)
						}
						n := random.Int64N(4)
						if random.IntN(8) == 0 {
							h.addMany(ctx, lim, []limiter.Attempt{{User: "user-0", N: n}, {User: "user-2", N: 1}, {User: "user-0", N: 2}})
						} else {
							res, err := lim.AllowN(ctx, fmt.Sprint("user-", random.IntN(3)), n)
							h.add(n, res, err)
						}
						cancel()
					}
				})
			}
			wg.Wait()
			h.check(t, func(key string) int64 {
				n, err := client.Get(t.Context(), key).Int64()
				if err != nil {
					t.Error(err)
				}
				return n
			})
			t.Logf("%d calls", scripts(c))
			if few := scripts(c) < 2500; few != (opts == nil) {
				t.Errorf("%d calls", scripts(c))
			}
		})
	}
}
