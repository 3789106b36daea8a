package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// Bounds of what a lane carries.
const (
	// maxInFlight is how many calls a lane holds, waiting to be written or for their
	// replies, those included that their callers have given up: it bounds the memory that a
	// node which hangs can take up, some megabytes while its script cache is not empty.
	maxInFlight = 16 << 10

	// maxBatch is how many calls share a seal. A server reads 16 KiB at a time and
	// replies to what was in it, some sixty calls: with more, the first replies
	// would wait for the second reading.
	maxBatch = 64

	// maxWrite is how many calls one write carries. Of a write to a node that has
	// stopped reading, every call may have got through.
	maxWrite = 8 * maxBatch

	// maxUnderWay is how many writes may be under way at a time, unless a whole batch
	// waits. Otherwise a busy connection would carry many small ones, at the price of a
	// system call on both sides for each. It costs a call a part of the
	// way there and back, and then only if others are on it.
	maxUnderWay = 2

	// stall is how long nothing may be heard from a connection on which calls are under
	// way before those that come take another.
	stall = 200 * time.Millisecond

	// letGo is how long it takes at most to notice that a context is done, for each
	// manyContexts calls in flight: so the work of looking at them does not grow with them.
	letGo        = 5 * time.Millisecond
	manyContexts = 1024

	// maxSilent is how many connections are kept for the sake of calls that were under way
	// when they fell silent, then the oldest ends. It has been silent for more than a
	// second and a half, and the next ones must not wait until it is given up.
	maxSilent = 8
)

// errCrowded means that a lane holds as many calls as it may.
var errCrowded = fmt.Errorf("%d calls are in flight to the node", maxInFlight)

// A lane is the one connection that all calls for a node share, or a second one
// when the first has fallen silent.
//
// Calls that come while others are under way wait in a queue, and whatever is in
// it leaves in one write; replies are dealt out in the order of the calls, and a call that
// comes while nothing is under way is written and read by its caller, at once. So
// calls form batches exactly as far as the node is behind, and nobody ever waits
// for a batch to fill. A caller that goes before its reply leaves the flight behind.
//
// Replies carry no name, so that one that got lost on the way would shift all that follow: each
// caller would have his neighbour's. TCP loses none, but what stands between may. So a
// write ends with a [seal], whose echo must come at its place; before, no
// reply of that write counts.
//
// A lane has no goroutine while nothing is under way, or soon after.
type lane struct {
	opener   *opener
	patience time.Duration // without a sign of life, calls being under way: the connection is dead

	mu       sync.Mutex
	link     *link // for calls to come, nil while there is none
	silent   []*link
	closed   bool
	dialling bool
	dials    context.Context
	giveUp   context.CancelFunc
	queue    []*flight // not written yet
	inFlight int       // in the queue or written
	used     time.Time // last
	alarm    time.Time // when the timer goes off, zero for never
	timer    *time.Timer
}

// A link is a lane's connection while it lasts.
type link struct {
	conn   net.Conn
	holder *redis.Client // that opened it
	idle   *idleProbe
	wake   func() // ends the wait of whoever reads, see errWoken

	// Guarded by the lane's mutex.
	writing, reading bool // somebody is at it
	deserted         bool // among the lane's silent ones: there is another for calls to come
	broken           error
	writes           int      // so far
	seals            seal     // the newest
	pending          []*batch // written, and not settled; the oldest first
	heard            time.Time

	out []byte // the writer's
	// The reader's.
	in    []byte    // what arrived
	low   int       // how much of it is understood
	until time.Time // when a read ends that finds nothing, zero for never
}

// A batch is some flights of one write, and the seal behind them.
type batch struct {
	flights []*flight
	seal    seal
	write   int       // the number of the write that carries it
	at      time.Time // of that write
	read    int       // how many replies have been read
}

var batches = sync.Pool{New: func() any { return new(batch) }}

// recycle gives back a batch that nothing is pending of.
func (b *batch) recycle() {
	clear(b.flights[:cap(b.flights)])
	b.flights, b.read = b.flights[:0], 0
	batches.Put(b)
}

func newLane(o *opener, patience time.Duration) *lane {
	l := &lane{opener: o, patience: patience}
	l.dials, l.giveUp = context.WithCancel(context.Background())
	return l
}

// do sends the flight and waits until it is settled, its deadline is over or ctx is
// done. Without an error the reply is in the flight, which is the caller's; with one it
// is not. sent says that the script may have run.
func (l *lane) do(ctx context.Context, f *flight, now time.Time) (sent bool, err error) {
	l.mu.Lock()
	if err := l.admit(f, now); err != nil {
		l.mu.Unlock()
		return false, err
	}
	l.inspect(now)
	if k := l.link; k != nil && k.quiet() && len(l.queue) == 0 {
		return l.alone(ctx, k, f, now)
	}
	l.join(f, now)
	l.start()
	l.mu.Unlock()
	return l.await(ctx, f)
}

// launch is the first part of do, for a caller that sends several calls at once. They leave
// with depart, if not before, and are then awaited.
func (l *lane) launch(f *flight, now time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.admit(f, now); err != nil {
		return err
	}
	l.join(f, now)
	return nil
}

// depart sends what was launched, unless it has left already.
func (l *lane) depart() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.queue) > 0 {
		l.inspect(time.Now())
		l.start()
	}
}

// admit counts one more flight, with the mutex held.
func (l *lane) admit(f *flight, now time.Time) error {
	if l.closed {
		return redis.ErrClosed
	}
	if l.inFlight >= maxInFlight {
		return errCrowded
	}
	l.inFlight++
	l.used = now
	l.arm(f.deadline, now)
	return nil
}

// join puts a flight into the queue, with the mutex held.
func (l *lane) join(f *flight, now time.Time) {
	l.queue = append(l.queue, f)
	if f.ctx != nil {
		l.arm(now.Add(l.nextLook()), now)
	}
}

// nextLook returns in what time to look at contexts, with the mutex held.
func (l *lane) nextLook() time.Duration { return letGo * time.Duration(1+l.inFlight/manyContexts) }

// inspect lets go of a connection that another call had better not be given to, with
// the mutex held.
func (l *lane) inspect(now time.Time) {
	switch k := l.link; {
	case k == nil || k.broken != nil:
	case len(k.pending) == 0 && !k.writing:
		// Who reads has not looked yet, or there is nobody who does.
		if k.idle.ended() || !k.reading && k.low < len(k.in) {
			l.fail(k, io.EOF)
		}
	case len(k.pending) > 0 && now.Sub(k.sign()) > stall:
		l.desert(k)
	}
}

// sign returns since when the connection, on which calls are under way, has owed a sign of life.
func (k *link) sign() time.Time { return later(k.heard, k.pending[0].at) }

// desert leaves a connection to those whose calls are under way on it, with the mutex held.
func (l *lane) desert(k *link) {
	if l.link != k {
		return
	}
	l.link = nil
	k.deserted = true
	l.silent = append(l.silent, k)
	k.wake() // who lingers there need not
	if len(l.silent) > maxSilent {
		l.fail(l.silent[0], errSilent)
	}
	l.start()
	l.part(k)
}

var errSilent = errors.New("the connection fell silent, and others after it")

// suspect deserts a connection that was not heard since it was given a flight that is
// given up, with the mutex held.
func (l *lane) suspect(f *flight) {
	if k := f.link; k != nil && k == l.link && len(k.pending) > 0 && k.heard.Before(k.pending[0].at) {
		l.desert(k)
	}
}

// renew has calls to come take a new connection in place of this one.
func (l *lane) renew(k *link) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if k != nil {
		l.desert(k)
	}
}

// quiet reports whether nothing is under way.
func (k *link) quiet() bool {
	return k.broken == nil && !k.reading && !k.writing && len(k.pending) == 0
}

// start sees to it that the queue, if there is one, will be written, with the mutex held.
func (l *lane) start() {
	switch k := l.link; {
	case len(l.queue) == 0:
	case k == nil:
		if !l.dialling {
			l.dialling = true
			go l.dial()
		}
	case k.writing || k.broken != nil:
	case l.due(k):
		k.writing = true
		go l.write(k)
	default:
		// When replies come; and if none does, over another connection.
		if l.alarm.IsZero() || l.alarm.Sub(l.used) > stall {
			now := time.Now()
			l.arm(now.Add(stall+time.Millisecond), now)
		}
	}
}

// due reports whether the queue is to be written now, with the mutex held. If not, it is
// when replies come.
func (l *lane) due(k *link) bool {
	return len(k.pending) == 0 || len(l.queue) >= maxBatch || k.writes-k.pending[0].write < maxUnderWay-1
}

// dial opens the connection.
func (l *lane) dial() {
	conn, holder, err := l.opener.open(l.dials)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dialling = false
	if err == nil && l.closed {
		_ = holder.Close()
		err = redis.ErrClosed
	}
	if err != nil {
		l.refuse(err)
		return
	}
	l.link = newLink(conn, holder)
	l.start()
}

// refuse settles what is in the queue, none of which was sent, with the mutex held.
func (l *lane) refuse(err error) {
	queue := l.queue
	l.queue = nil
	l.inFlight -= len(queue)
	for _, f := range queue {
		f.settle(err)
	}
}

// settle tells the caller, if there is still one, with the mutex held.
func (f *flight) settle(err error) {
	if f.state != awaited {
		return
	}
	f.state, f.err = settled, err
	f.done <- true
}

// await waits for a flight that is in the queue, or further. See do.
func (l *lane) await(ctx context.Context, f *flight) (sent bool, err error) {
	if inTime := <-f.done; !inTime {
		return f.sent, leaving(ctx) // nobody but the caller looks at sent any more
	}
	sent, err = f.sent, f.err
	if err != nil {
		f.recycle()
	}
	return sent, err
}

// arm has the timer go off at the time or before, with the mutex held.
func (l *lane) arm(at, now time.Time) {
	if !l.alarm.IsZero() && !at.Before(l.alarm) {
		return
	}
	l.alarm = at
	if l.timer == nil {
		l.timer = time.AfterFunc(at.Sub(now), l.expire)
	} else {
		l.timer.Reset(at.Sub(now))
	}
}

// expire is what the timer does: it ends the wait for flights whose time is over or
// whose callers are, and a connection that is dead.
//
// To look at all contexts now and then is cheaper than to have each caller wait for two things,
// for which it would have to be entered in two lists, under two locks, and taken out again.
func (l *lane) expire() {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	l.alarm = time.Time{}
	if len(l.queue) > 0 {
		l.inspect(now)
	}
	var next time.Time
	sooner := func(at time.Time) {
		if next.IsZero() || at.Before(next) {
			next = at
		}
	}
	visit := func(f *flight) {
		switch {
		case f.state != awaited:
		case f.deadline.After(now) && (f.ctx == nil || f.ctx.Err() == nil):
			sooner(f.deadline)
			if f.ctx != nil && !f.alone {
				sooner(now.Add(l.nextLook()))
			}
		case f.alone:
			f.link.wake() // its caller reads
		default:
			f.state = left
			l.suspect(f)
			f.done <- false
		}
	}
	for _, f := range l.queue {
		visit(f)
	}
	for _, k := range l.links() {
		if len(k.pending) == 0 || k.broken != nil {
			continue
		}
		if k == l.link && len(l.queue) > 0 {
			sooner(k.sign().Add(stall + time.Millisecond))
		}
		for _, b := range k.pending {
			for _, f := range b.flights {
				visit(f)
			}
		}
		if dead := k.sign().Add(l.patience); dead.After(now) {
			sooner(dead)
		} else {
			l.fail(k, fmt.Errorf("no reply from %s for %v: %w", l.opener.addr(), l.patience, context.DeadlineExceeded))
		}
	}
	if !next.IsZero() {
		// Deadlines may be as many as calls, and each visit is to all of them.
		l.arm(later(next, now.Add(time.Millisecond)), now)
	}
}

// links returns a list of all connections, with the mutex held.
func (l *lane) links() []*link {
	if l.link == nil {
		return slices.Clone(l.silent)
	}
	return append([]*link{l.link}, l.silent...)
}

func newLink(conn net.Conn, holder *redis.Client) *link {
	wake := func() { _ = conn.SetReadDeadline(past) }
	return &link{conn: conn, holder: holder, idle: newIdleProbe(conn), wake: wake, heard: time.Now()}
}

var past = time.Unix(1, 0)

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// fail ends the connection, with the mutex held. What becomes of its flights is
// settled when nobody reads or writes any more, which is at once.
func (l *lane) fail(k *link, err error) {
	if k.broken != nil {
		return
	}
	k.broken = err
	_ = k.conn.Close()
	l.part(k)
}

// drop settles the flights of a connection that has ended, and lets go of it, with
// the mutex held. Those in the queue get another.
func (l *lane) drop(k *link) {
	if l.link == k {
		l.link = nil
	}
	l.silent = slices.DeleteFunc(l.silent, func(other *link) bool { return other == k })
	_ = k.holder.Close() // and with it the connection
	for _, b := range k.pending {
		l.inFlight -= len(b.flights)
		for _, f := range b.flights {
			f.settle(k.broken)
		}
	}
	k.pending = nil
	l.start()
}

// close ends the lane for good.
func (l *lane) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	l.giveUp() // dialling
	if l.timer != nil {
		l.timer.Stop()
	}
	l.refuse(redis.ErrClosed)
	for _, k := range l.links() {
		l.fail(k, errClosedUnderWay)
	}
}

// errClosedUnderWay is not redis.ErrClosed, which says that nothing was sent.
var errClosedUnderWay = errors.New("the client was closed while the call was under way")

// retire lets go of a connection that has not been used since the time.
func (l *lane) retire(since time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if k := l.link; k != nil && k.quiet() && l.used.Before(since) {
		l.drop(k)
	}
}
