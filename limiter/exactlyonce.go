package limiter

import (
	_ "embed"
	"fmt"
	"math/rand/v2"
	"sync/atomic"

	"github.com/slotlimit/slotlimit/cluster"
)

var (
	//go:embed lua/exactly_once.lua
	exactlyOnceText string

	exactlyOnceScript = cluster.NewScript(exactlyOnceText)
)

// CountField is the field that holds the count, where the counter is a hash: in
// exactly-once mode. HGET key n reads it, as GET key reads a counter of the usual form.
const CountField = "n"

// WithExactlyOnce has a call whose reply was lost sent again, until its deadline, and
// counts it once all the same. So ErrAmbiguous is left for the calls whose deadline comes
// first, and for a few whose window ends first; see below.
//
// The counter is a hash then, with a field for each process that counted in it: the
// number of the newest call of the process, and what that was told. A call that arrives
// once more is told the same again, and one that is older than the newest counts nothing.
// This relies on coalescing, by which a process has one call of a user under way at a
// time: with [WithoutCoalescing] New returns ErrOption.
//
// All limiters that share counters must use it, or none: to the others a counter is of the
// wrong type, and their calls are ErrUnavailable with WRONGTYPE. The same holds for those
// that the cluster still holds when a service changes to it, until their windows end: with
// a prefix of its own ([WithPrefix]) it starts with new ones. Who reads the counters
// reads [CountField]. The ACL must allow HMGET, HSET, HGETALL, HDEL and PEXPIREAT.
//
// # When it is ambiguous before the deadline
//
// A window ends while a call is sent again. If the call was counted in that window, it is
// told so as long as the counter is there, which is for the grace: so a grace that is as
// long as the client's time-out is right here. After that nobody knows, and it must not
// be counted in the next window.
//
// And a process that is wrong about the node's time addresses a window that has not begun.
// Told so, it turns to the present one, but not after a reply was lost: that sending
// may still arrive in the window that it was for.
//
// A number is only good while its field is there. In windows of more than an hour, a
// field that was not used for an hour is removed, since processes come and go, when another is
// added. So that no sending can be late enough to miss it, each carries the time
// at which it was made and counts within five minutes of that, by the node's clock. After
// those, a call that waits longer for a node gets a new number: the node says that the
// old one was not counted and cannot be any more. Only if it cannot, since an hour
// passed or the counter is gone, the call is ambiguous.
//
// # What it costs
//
// Memory: a user's counter takes 136 bytes in place of 72 with one process, and 30 to 40
// for each further one. Time: a server works about twice as long on a call. Reset keeps
// the counter and sets its count to 0, since a call that was counted before must still be
// recognised.
//
// With [WithDurable] a call that arrives once more is confirmed as the first sending
// would have been.
func WithExactlyOnce() Option {
	return func(l *Limiter) error {
		l.exactly = true
		return nil
	}
}

// exactlyOnce turns to the form of the algorithm that the option asks for, or returns ErrOption.
func (l *Limiter) exactlyOnce() error {
	if !l.exactly {
		return nil
	}
	if l.crowds == nil {
		return fmt.Errorf("%w: exactly once without coalescing: a process must not have two calls of a user under way", ErrOption)
	}
	form, ok := l.algorithm.(interface{ exactlyOnce() algorithm })
	if !ok {
		return fmt.Errorf("%w: exactly once is not for %v", ErrOption, l.limit)
	}
	l.algorithm = form.exactlyOnce()
	return nil
}

// A numbered fixed window counts a call once, however often it arrives, by the number that
// this process gave it.
type numbered struct {
	*fixedWindow
	process int64        // 53 random bits, not 0: two processes of the same number would not count
	newest  atomic.Int64 // call
}

func (f *fixedWindow) exactlyOnce() algorithm {
	return &numbered{fixedWindow: f, process: 1 + rand.Int64N(MaxRate)}
}

// call gives a call that writes the next number. It is asked anew when the node has told
// that the guess was wrong; then the node, or that there was no other sending, proves that what
// had the old number is not counted, see unsettled.
func (x *numbered) call(e errand, at counter, cost int64, args []int64) cluster.Call {
	var number int64
	if e.writes(cost) {
		number = x.newest.Add(1)
	}
	if e == reset {
		cost = -1
	}
	grace := x.grace.Milliseconds()
	args = append(args, cost, at.end+grace-at.guess, x.limit.Period.Milliseconds(), grace, x.process, number)
	return cluster.Call{Script: exactlyOnceScript, Key: at.key, Args: args, Repeatable: true, Unsettled: unsettled}
}

// unsettled reports replies by which the node cannot say what became of another sending
// of the call, whose reply was lost.
func unsettled(reply []int64) bool { return len(reply) == 3 && reply[0] == 0 && reply[2] != 0 }
