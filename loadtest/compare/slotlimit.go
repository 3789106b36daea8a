package main

import (
	"context"

	"github.com/slotlimit/slotlimit/keys"
	"github.com/slotlimit/slotlimit/limiter"
)

// contenderSlotlimit is this module's limiter, as a service gets it: cluster.Open, limiter.New,
// Allow, with every option at its default.
var contenderSlotlimit = contender{
	name:   ours,
	module: "github.com/slotlimit/slotlimit",
	about:  "this limiter: cluster.Open, limiter.New, Allow",
	open: func(_ context.Context, t *target, q quota) (rival, error) {
		lim, err := limiter.New(t.calls, limiter.Per(q.rate, q.period))
		if err != nil {
			return nil, err
		}
		return single(func(ctx context.Context, user string) (bool, error) {
			res, err := lim.Allow(ctx, user)
			return res.Allowed, err
		}), nil
	},
	keys: func(user string, q quota, windows []int64) []string {
		var layout keys.Layout
		var names []string
		for _, w := range windows {
			if name, err := layout.Window(user, "", q.period, w); err == nil { // else there is none
				names = append(names, name)
			}
		}
		return names
	},
	counts: true,
}
