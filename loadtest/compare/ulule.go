package main

import (
	"context"

	"github.com/ulule/limiter/v3"
	"github.com/ulule/limiter/v3/drivers/store/redis"
)

// contenderUlule is ulule/limiter with its Redis store: a fixed window that begins with a user's first
// attempt, in one script.
var contenderUlule = contender{
	name:   "ulule",
	module: "github.com/ulule/limiter/v3",
	about:  "its Redis store, New, Get",
	open: func(_ context.Context, t *target, q quota) (rival, error) {
		store, err := redis.NewStore(t.others)
		if err != nil {
			return nil, err
		}
		lim := limiter.New(store, limiter.Rate{Limit: q.rate, Period: q.period})
		return single(func(ctx context.Context, user string) (bool, error) {
			res, err := lim.Get(ctx, user)
			return !res.Reached, err
		}), nil
	},
	keys:   oneKey(limiter.DefaultPrefix + ":"),
	counts: true,
}
