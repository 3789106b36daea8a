package loadgen

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/slotlimit/slotlimit/limiter"
)

// A Load says how much to send.
type Load struct {
	Schedule Schedule
	Requests int64 // from 1, or 0: as many as the duration gives time for
	Workers  int   // requests under way at one time, from 1

	// Duration is how long requests are handed out, 0: until all are sent. What is
	// under way when it is over comes back later.
	Duration time.Duration
}

// Validate returns an error that says which field is out of range.
func (l Load) Validate() error {
	if l.Duration < 0 {
		return fmt.Errorf("a duration of %v: want more than 0", l.Duration)
	}
	if l.Requests < 0 || l.Requests == 0 && l.Duration == 0 {
		return fmt.Errorf("%d requests: want at least 1", l.Requests)
	}
	if l.Workers < 1 || l.Workers > MaxWorkers {
		return fmt.Errorf("%d workers: want 1 to %d", l.Workers, MaxWorkers)
	}
	return l.Schedule.Validate()
}

// MaxWorkers is the most workers of a load: each may hold a connection to each node,
// and a node takes 10,000 unless it is told otherwise.
const MaxWorkers = 4096

// An Attempt is a request that has ended.
type Attempt struct {
	User   string
	Result limiter.Result // if Err is nil
	Err    error

	// Start and End are when the request was sent and when its answer came, by this
	// process's clock, the monotonic one.
	Start, End time.Time
}

// errOver is how a run ends whose duration is over.
var errOver = errors.New("the duration is over")

// Run sends the load to the target, and gives each attempt to record, from many
// goroutines at a time. It returns when all workers are done: how many requests were
// sent, and the cause of ctx's end if that was before the last one, or before the
// load's duration was over.
//
// When ctx or the duration ends, no further request is sent, and those under way are left to come
// back. To break them off would only make their outcome unknown. So it is the target
// that has to bound how long a call takes.
func Run(ctx context.Context, load Load, target limiter.Allower, record func(Attempt)) (sent int64, err error) {
	calls := context.WithoutCancel(ctx)
	most := load.Requests
	if most == 0 {
		most = math.MaxInt64
	}
	if load.Duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, load.Duration, errOver)
		defer cancel()
	}
	var next atomic.Int64
	var workers errgroup.Group
	for range load.Workers {
		workers.Go(func() error {
			for ctx.Err() == nil {
				request := next.Add(1) - 1
				if request >= most {
					return nil
				}
				user := load.Schedule.User(request)
				start := time.Now()
				result, err := target.AllowN(calls, user, 1)
				record(Attempt{User: user, Result: result, Err: err, Start: start, End: time.Now()})
			}
			return context.Cause(ctx)
		})
	}
	err = workers.Wait()
	sent = min(next.Load(), most)
	if errors.Is(err, errOver) || sent == load.Requests {
		err = nil
	}
	return sent, err
}
