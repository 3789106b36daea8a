package main

import (
	"context"

	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/goredisstore.v9"
)

// throttledPrefix is that of its own example.
const throttledPrefix = "throttled:"

// contenderThrottled is throttled with its store for this version of go-redis. Its algorithm
// is GCRA in this process: it reads the state and the time, decides, and writes if nobody else has
// written meanwhile, else begins anew, ten times at most. So a decision is two round trips or more.
var contenderThrottled = contender{
	name:   "throttled",
	module: "github.com/throttled/throttled/v2",
	about:  "goredisstore.v9, NewGCRARateLimiterCtx, RateLimitCtx",
	open: func(_ context.Context, t *target, q quota) (rival, error) {
		store, err := goredisstore.NewCtx(t.others, throttledPrefix)
		if err != nil {
			return nil, err
		}
		lim, err := throttled.NewGCRARateLimiterCtx(store, throttled.RateQuota{
			MaxRate:  throttled.PerDuration(int(q.rate), q.period),
			MaxBurst: int(q.rate) - 1, // beyond the first
		})
		if err != nil {
			return nil, err
		}
		return single(func(ctx context.Context, user string) (bool, error) {
			limited, _, err := lim.RateLimitCtx(ctx, user, 1)
			return !limited, err
		}), nil
	},
	keys: oneKey(throttledPrefix),
}
