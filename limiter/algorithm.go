package limiter

import "github.com/slotlimit/slotlimit/cluster"

// An algorithm is a way to count, as the rest of the package knows it: which counter,
// which script with which arguments, what the reply means, and how an answer is dealt out to
// the attempts that shared one call. Nothing else of the package depends on
// how a limit counts. Any number of goroutines may use one.
type algorithm interface {
	// counter returns where the attempts of a user are counted when the user's node says
	// that the time is milli, in ms of Unix time. tag is the user's, see [keys.UserTag].
	counter(tag string, milli int64) counter

	// call returns the call that does the errand on the counter. cost is the sum of the
	// costs of the attempts that share the call, below 2^53, and 0 for a reset. The
	// arguments are appended to args, which the caller lends until the reply is there.
	//
	// It is asked anew for each sending, also for one that only corrects a guess. How long
	// the call must last, [WithDurable], is added by the limiter.
	call(e errand, at counter, cost int64, args []int64) cluster.Call

	// read decodes the reply to a call for the errand, and reports false for one that no
	// version of the scripts gives.
	read(e errand, at counter, reply []int64) (answer, bool)

	// deal returns the decision on one attempt, from the answer to a call that may have
	// been for more: what the attempt would have been told, had each of them been a call
	// of its own, in their order. The limiter adds what names the counter.
	//
	// An algorithm for which the sum of the costs is not enough to tell needs them one
	// by one, in call and here; a batch then has to keep them.
	//
	// It is asked for attempts after the answer too, of which the call knew nothing: the
	// total is then 0, and before is the costs of those between the answer and this one.
	deal(a answer, s share) Result

	// denies reports whether, after the answer, each further attempt is denied for a time
	// that is known, in ms from the answer, whatever it costs and whoever makes others
	// meanwhile. Such attempts must be of a kind that counts, so that they can be added
	// later; [WithDenialCache] is built on it.
	denies(a answer) (left int64, ok bool)
}

// An errand is what a call is for.
type errand uint8

const (
	attempts   errand = iota // count attempts; of cost 0 in all, look at the counter only
	reset                    // forget what was counted
	settlement               // add attempts to a counter whose time is over, if it is there
)

// writes reports whether the errand changes the counter, at a cost.
func (e errand) writes(cost int64) bool { return e != attempts || cost > 0 }

// A counter is the Redis key that counts a user at some time.
type counter struct {
	key    string
	window int64 // the number of its window
	end    int64 // of the window, in ms of Unix time
	guess  int64 // the node's time by which it was chosen, in ms of Unix time
	floor  int64 // for a settlement: what it held when the attempts were denied
}

// An answer is what a script replied.
type answer struct {
	stale bool  // nothing was done: by the node's clock it is not this counter's time
	now   int64 // the node's clock, in ms of Unix time
	count int64 // the attempts so far, those of the call included
	left  int64 // ms until the count starts again; above 0 unless stale
}

// A share is the part of one attempt in a call.
type share struct {
	cost   int64 // of the attempt; 0 looks only
	before int64 // the costs of the attempts that came before it, in sum
	total  int64 // the costs of all, in sum
}

// alone is the share of an attempt that has a call to itself.
func alone(cost int64) share { return share{cost: cost, total: cost} }
