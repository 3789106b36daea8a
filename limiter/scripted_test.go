package limiter

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slotlimit/slotlimit/cluster"
)

// A scripted Runner hands each call to the test, which says when it is answered, and what.
type scripted struct {
	calls   chan *sentCall
	batches atomic.Int64 // calls of RunAll
	home    func(key string) string
}

// A sentCall is a call that waits for the test.
type sentCall struct {
	cluster.Call
	ctx   context.Context
	reply chan func() ([]int64, error)
}

func newScripted() *scripted {
	return &scripted{calls: make(chan *sentCall, 100), home: func(string) string { return "scripted" }}
}

func (r *scripted) Home(_ context.Context, key string) string { return r.home(key) }

func (r *scripted) Run(ctx context.Context, call cluster.Call) ([]int64, error) {
	return r.send(ctx, call).await()
}

// RunAll is all of its calls at once, and panics where one of them does.
func (r *scripted) RunAll(ctx context.Context, calls []cluster.Call) []cluster.Outcome {
	r.batches.Add(1)
	sent := make([]*sentCall, len(calls))
	for i, call := range calls {
		sent[i] = r.send(ctx, call)
	}
	outcomes := make([]cluster.Outcome, len(calls))
	for i, call := range sent {
		outcomes[i].Reply, outcomes[i].Err = call.await()
	}
	return outcomes
}

func (r *scripted) send(ctx context.Context, call cluster.Call) *sentCall {
	call.Args = append([]int64{}, call.Args...)
	sent := &sentCall{Call: call, ctx: ctx, reply: make(chan func() ([]int64, error), 1)}
	r.calls <- sent
	return sent
}

func (c *sentCall) await() ([]int64, error) {
	select {
	case reply := <-c.reply:
		return reply()
	default:
	}
	select {
	case reply := <-c.reply:
		return reply()
	case <-c.ctx.Done():
		return nil, &cluster.CallError{Key: c.Key, Kind: ErrAmbiguous, Err: c.ctx.Err()}
	}
}

// next returns the call that was sent and is waited for, or nil if none is.
func (r *scripted) next() *sentCall {
	synctest.Wait()
	for {
		select {
		case call := <-r.calls:
			if call.ctx.Err() == nil {
				return call
			}
		default:
			return nil
		}
	}
}

// must is next where a call must have been sent, of this cost.
func (r *scripted) must(t *testing.T, cost int64) *sentCall {
	t.Helper()
	call := r.next()
	if call == nil {
		t.Fatalf("no call was sent, want one of cost %d", cost)
	}
	if call.cost() != cost {
		t.Fatalf("a call of cost %d was sent, want %d", call.cost(), cost)
	}
	return call
}

// none fails the test if a call was sent.
func (r *scripted) none(t *testing.T) {
	t.Helper()
	if call := r.next(); call != nil {
		t.Fatalf("a call of cost %d was sent, want none", call.cost())
	}
}

func (c *sentCall) cost() int64 {
	if c.Script == resetScript {
		return 0
	}
	return costOf(c.Call)
}

// costOf returns the cost of a call of the fixed window.
func costOf(call cluster.Call) int64 {
	if len(call.Args) == 1 {
		return 1
	}
	return call.Args[1]
}

// counted is a reply: the window's count is n after the call, and it has half a minute left.
func counted(n int64) func() ([]int64, error) {
	return func() ([]int64, error) { return []int64{1, n, 30_000}, nil }
}

// count answers that the count is n.
func (c *sentCall) count(n int64) {
	c.reply <- counted(n)
	synctest.Wait()
}

// stale answers that it is another window, by a clock that says now.
func (c *sentCall) stale(now time.Time) {
	c.reply <- func() ([]int64, error) { return []int64{0, now.UnixMilli(), 0}, nil }
	synctest.Wait()
}

// fail answers with an error of the kind.
func (c *sentCall) fail(kind error) {
	c.reply <- func() ([]int64, error) { return nil, &cluster.CallError{Key: c.Key, Kind: kind, Err: errScripted} }
	synctest.Wait()
}

// do answers by running f where the Runner runs.
func (c *sentCall) do(f func()) {
	c.reply <- func() ([]int64, error) { f(); return nil, nil }
	synctest.Wait()
}

// A caller is one call of a limiter, in a goroutine of its own.
type caller struct {
	n    int64
	end  context.CancelFunc
	done chan struct{}

	res      Result
	err      error
	panicked any
}

// call starts f for a caller with a ctx that can be cancelled, and returns when it can get no further.
func call(ctx context.Context, n int64, f func(context.Context) (Result, error)) *caller {
	c := &caller{n: n, done: make(chan struct{})}
	ctx, c.end = context.WithCancel(ctx)
	go func() {
		defer close(c.done)
		defer func() { c.panicked = recover() }()
		c.res, c.err = f(ctx)
	}()
	synctest.Wait()
	return c
}

// allow starts an attempt of alice.
func allow(ctx context.Context, l *Limiter, n int64) *caller {
	return call(ctx, n, func(ctx context.Context) (Result, error) { return l.AllowN(ctx, "alice", n) })
}

// cancel ends the caller's ctx, and returns when that has had its effect.
func (c *caller) cancel() {
	c.end()
	time.Sleep(letGo)
	synctest.Wait()
}

// isDone reports whether the caller has its outcome.
func (c *caller) isDone() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// wantCount fails the test unless the caller was told this count.
func (c *caller) wantCount(t *testing.T, count int64) {
	t.Helper()
	if !c.isDone() || c.err != nil || c.panicked != nil || c.res.Count != count {
		t.Fatalf("a caller of cost %d: done %v, count %d, %v, panic %v; want count %d", c.n, c.isDone(), c.res.Count, c.err, c.panicked, count)
	}
}

// wantError fails the test unless the caller got an error of the kind, with the cause.
func (c *caller) wantError(t *testing.T, kind, cause error) {
	t.Helper()
	if !c.isDone() || !isCallError(c.err, kind, cause) {
		t.Fatalf("a caller of cost %d: done %v, %v; want %v in a CallError with a key and the cause %v", c.n, c.isDone(), c.err, kind, cause)
	}
}

// wantQuiet fails the test if the limiter holds anything for anybody.
func wantQuiet(t *testing.T, l *Limiter) {
	t.Helper()
	for i := range l.crowds.stripes {
		for tag := range l.crowds.stripes[i].crowds {
			t.Errorf("the crowd of %q is left", tag)
		}
	}
}
