package limiter

import "time"

// A Result is one decision, and the state of the user's limit right after it. All
// of it comes from one reply of the node that counts, unless it is Local.
type Result struct {
	// Allowed says whether the attempt may go on. For Peek, whether an attempt of
	// cost 1 could have at that moment.
	Allowed bool

	// Limit is what was applied.
	Limit Limit

	// Count is the number of attempts in the window so far, allowed and denied, each
	// with its cost, this one included. The third attempt of a window that allows
	// 100 has 3, the first that is denied 101.
	Count int64

	// Remaining is how much more would be allowed until the window's end: 97 after
	// the third attempt of 100, 0 after the hundredth and ever after.
	Remaining int64

	// RetryAfter is how long to wait before an attempt can be allowed, 0 when this
	// one was. Who sleeps exactly so long meets a new window.
	RetryAfter time.Duration

	// ResetAfter is the time until the window's end, when the count starts again
	// from 0, by the clock of the node that counts. Always above 0.
	ResetAfter time.Duration

	// Key is the Redis key of the counter, and Window the number of its window:
	// Unix time divided by the period, rounded down.
	Key    string
	Window int64

	// Local says that this process gave the answer, from what it knew, and that the
	// attempt is not in the counter yet. Only a limiter with [WithDenialCache] does, and
	// only denies so. Count is then what the counter was, and all that is owed to it.
	Local bool
}
