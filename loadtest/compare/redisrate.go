package main

import (
	"context"

	"github.com/go-redis/redis_rate/v10"
)

// contenderRedisRate is go-redis's own limiter. Its algorithm is GCRA, in one script.
var contenderRedisRate = contender{
	name:   yardstick,
	module: "github.com/go-redis/redis_rate/v10",
	about:  "NewLimiter, Allow",
	open: func(_ context.Context, t *target, q quota) (rival, error) {
		lim := redis_rate.NewLimiter(t.others)
		limit := redis_rate.Limit{Rate: int(q.rate), Burst: int(q.rate), Period: q.period}
		return single(func(ctx context.Context, user string) (bool, error) {
			res, err := lim.Allow(ctx, user, limit)
			if err != nil {
				return false, err
			}
			return res.Allowed > 0, nil
		}), nil
	},
	keys: oneKey("rate:"),
}
