package limiter

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/slotlimit/slotlimit/cluster"
)

// maxGuesses bounds the attempts at hitting a counter's time. The second guess, made
// with the node's own time, misses only if a boundary passes under way; windows
// that are shorter than the way take a few more.
const maxGuesses = 8

var errWindowsTooShort = errors.New("windows pass faster than calls reach the node")

// A trip is one errand to a user's node, made again while the node says that the
// caller was wrong about its time. Nothing was counted then.
type trip struct {
	errand errand
	cost   int64

	tag     string
	home    string // the node, as far as is known
	clock   *nodeClock
	guesses int
	sent    time.Time // the last guess, by this process's clock
	at      counter   // where it leads, by that guess
	answer  answer    // once there is one

	debt *debt // what a settlement adds to the counter

	args [8]int64 // lent to the algorithm
}

// prepare sets the trip up for the user of the tag.
func (l *Limiter) prepare(ctx context.Context, t *trip, tag string) {
	t.tag = tag
	t.home = l.client.Home(ctx, tag)
	t.clock = l.clocks.of(t.home)
}

// guess sets the counter for the present. A settlement has its own, and takes what is owed
// to it.
func (l *Limiter) guess(t *trip) {
	t.guesses++
	t.sent = l.now()
	if t.errand == settlement {
		t.at.guess = t.clock.at(t.sent)
		l.carry(t)
	} else {
		t.at = l.algorithm.counter(t.tag, t.clock.at(t.sent))
	}
}

// call returns the call that the trip makes at its present guess.
func (l *Limiter) call(t *trip) cluster.Call {
	call := l.algorithm.call(t.errand, t.at, t.cost, t.args[:0])
	if t.guesses == 1 { // after that it is no news
		call.Home = t.home
	}
	if t.errand.writes(t.cost) {
		call.Durable = l.durable
	}
	return call
}

// learn takes what became of the call. It reports whether the trip is over, with the
// trip's answer or with an error.
func (l *Limiter) learn(t *trip, reply []int64, err error) (over bool, _ error) {
	if err == nil {
		over, err = l.understand(t, reply)
	}
	over = over || err != nil
	if over && l.denials != nil {
		switch {
		case t.errand == settlement:
			l.deliver(t, err)
		case err != nil:
		case t.errand == reset:
			l.forgive(t)
		default:
			l.remember(t)
		}
	}
	return over, err
}

// understand takes a reply. It reports whether that is an answer.
func (l *Limiter) understand(t *trip, reply []int64) (answered bool, _ error) {
	answer, ok := l.algorithm.read(t.errand, t.at, reply)
	switch {
	case !ok:
		return false, &cluster.CallError{Key: t.at.key, Kind: ErrAmbiguous, Err: fmt.Errorf("unknown reply %v", reply)}
	case t.errand == settlement:
		t.answer = answer
		return true, nil
	case !answer.stale:
		t.clock.confirm(t.sent, answer.now)
		t.answer = answer
		return true, nil
	}
	t.clock.correct(t.sent, answer.now)
	if t.guesses >= maxGuesses {
		return false, &cluster.CallError{Key: t.at.key, Kind: ErrUnavailable, Err: errWindowsTooShort}
	}
	return false, nil
}

// travel makes the whole trip, for one caller.
func (l *Limiter) travel(ctx context.Context, t *trip, tag string) error {
	l.prepare(ctx, t, tag)
	for {
		l.guess(t)
		reply, err := l.client.Run(ctx, l.call(t))
		if over, err := l.learn(t, reply, err); over {
			return err
		}
	}
}

// deal is the Result of one of the attempts that shared the trip.
func (l *Limiter) deal(t *trip, s share) Result {
	res := l.algorithm.deal(t.answer, s)
	res.Key, res.Window = t.at.key, t.at.window
	return res
}
