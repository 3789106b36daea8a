package loadgen

import (
	"context"
	"fmt"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/slotlimit/slotlimit/limiter"
)

// A Load says how much to send.
type Load struct {
	Schedule Schedule
	Requests int64 // from 1
	Workers  int   // requests under way at one time, from 1
}

// Validate returns an error that says which field is out of range.
func (l Load) Validate() error {
	if l.Requests < 1 {
		return fmt.Errorf("%d requests: want at least 1", l.Requests)
	}
	if l.Workers < 1 {
		return fmt.Errorf("%d workers: want at least 1", l.Workers)
	}
	return l.Schedule.Validate()
}

// An Attempt is a request that has ended.
type Attempt struct {
	User   string
	Result limiter.Result // if Err is nil
	Err    error
}

// Run sends the load to the target, and gives each attempt to record, from many
// goroutines at a time. It returns when all workers are done: how many requests were
// sent, and the cause of ctx's end if that was before the last one.
//
// When ctx ends, no further request is sent, and those under way are left to come
// back. To break them off would only make their outcome unknown. So it is the target
// that has to bound how long a call takes.
func Run(ctx context.Context, load Load, target limiter.Allower, record func(Attempt)) (sent int64, err error) {
	var next atomic.Int64
	var workers errgroup.Group
	calls := context.WithoutCancel(ctx)
	for range load.Workers {
		workers.Go(func() error {
			for ctx.Err() == nil {
				request := next.Add(1) - 1
				if request >= load.Requests {
					return nil
				}
				user := load.Schedule.User(request)
				result, err := target.AllowN(calls, user, 1)
				record(Attempt{User: user, Result: result, Err: err})
			}
			return context.Cause(ctx)
		})
	}
	err = workers.Wait()
	return min(next.Load(), load.Requests), err
}
