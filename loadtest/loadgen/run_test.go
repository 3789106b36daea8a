package loadgen_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slotlimit/slotlimit/limiter"
	"github.com/slotlimit/slotlimit/loadtest/loadgen"
)

// allower is a limiter made of a function.
type allower func(ctx context.Context, user string, n int64) (limiter.Result, error)

func (a allower) AllowN(ctx context.Context, user string, n int64) (limiter.Result, error) {
	return a(ctx, user, n)
}

func load(requests int64, workers int) loadgen.Load {
	return loadgen.Load{Schedule: loadgen.Schedule{Seed: 3, Users: 10}, Requests: requests, Workers: workers}
}

// Whatever the number of workers, a seed asks for the same users, each as often.
func TestRunSendsTheSchedule(t *testing.T) {
	want := map[string]int{}
	for i := range int64(1000) {
		want[load(1000, 1).Schedule.User(i)]++
	}
	for _, workers := range []int{1, 7, 2000} {
		var mu sync.Mutex
		got, costs := map[string]int{}, int64(0)
		target := allower(func(_ context.Context, _ string, n int64) (limiter.Result, error) {
			atomic.AddInt64(&costs, n)
			return limiter.Result{}, nil
		})
		sent, err := loadgen.Run(t.Context(), load(1000, workers), target, func(a loadgen.Attempt) {
			mu.Lock()
			defer mu.Unlock()
			got[a.User]++
		})
		if sent != 1000 || err != nil || costs != 1000 {
			t.Errorf("%d workers: sent %d, cost %d, %v; want 1000", workers, sent, costs, err)
		}
		if !maps.Equal(got, want) {
			t.Errorf("%d workers: sent %v, want %v", workers, got, want)
		}
	}
}

// A run that is cut short starts nothing more, lets what is under way come back with
// a context that goes on, and tells of all of it.
func TestRunCutShort(t *testing.T) {
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	var started, recorded atomic.Int64
	all := make(chan struct{})
	target := allower(func(ctx context.Context, _ string, _ int64) (limiter.Result, error) {
		if started.Add(1) == 5 {
			cancel(cause)
			close(all)
		}
		<-all
		return limiter.Result{}, ctx.Err()
	})
	sent, err := loadgen.Run(ctx, load(1000, 5), target, func(a loadgen.Attempt) {
		if a.Err != nil {
			t.Errorf("a call under way was broken off: %v", a.Err)
		}
		recorded.Add(1)
	})
	if !errors.Is(err, cause) || sent != 5 || recorded.Load() != 5 {
		t.Errorf("sent %d, recorded %d, error %v; want 5, 5 and the cause", sent, recorded.Load(), err)
	}
}

// A duration ends a run without a number of requests, and that is no error.
func TestRunForADuration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var recorded atomic.Int64
		target := allower(func(context.Context, string, int64) (limiter.Result, error) {
			time.Sleep(time.Second)
			return limiter.Result{}, nil
		})
		l := load(0, 3)
		l.Duration = 9500 * time.Millisecond
		began := time.Now()
		sent, err := loadgen.Run(t.Context(), l, target, func(a loadgen.Attempt) {
			recorded.Add(1)
			if took := a.End.Sub(a.Start); took != time.Second || a.Start.Sub(began)%time.Second != 0 {
				t.Errorf("from %v to %v", a.Start.Sub(began), a.End.Sub(began))
			}
		})
		if sent != 30 || err != nil || recorded.Load() != 30 {
			t.Errorf("sent %d, recorded %d, %v; want 30", sent, recorded.Load(), err)
		}
		l.Requests = 5
		if sent, err := loadgen.Run(t.Context(), l, target, func(loadgen.Attempt) {}); sent != 5 || err != nil {
			t.Errorf("sent %d, %v; want 5, which come first", sent, err)
		}
	})
}

func TestLoadValidate(t *testing.T) {
	if err := load(1, 1).Validate(); err != nil {
		t.Error(err)
	}
	endless := load(0, 1)
	endless.Duration = time.Second
	if err := endless.Validate(); err != nil {
		t.Error(err)
	}
	before := load(5, 1)
	before.Duration = -1
	for _, l := range []loadgen.Load{load(0, 1), load(-1, 1), load(1, 0), {Requests: 1, Workers: 1}, before} {
		if l.Validate() == nil {
			t.Errorf("%+v passes", l)
		}
	}
}

func ExampleSchedule() {
	s := loadgen.Schedule{Seed: 1, Users: 3}
	for request := range int64(4) {
		fmt.Println(s.User(request))
	}
	// Output:
	// u-bd0fd9f0
	// u-bd0fd9f0
	// u-efe3d5fa
	// u-efe3d5fa
}
