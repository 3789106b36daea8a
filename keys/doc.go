// Package keys names the Redis keys of the rate limiter, finds the hash slot of
// a key, and reads a key back into the user, the limit and the window it is for.
//
// # The forms of a key
//
//	prefix
//	│    hash tag = user
//	│    ┌─┴─┐     limit name
//	│    │   │     │         window number
//	│    │   │     │         │
//	rl:{ alice }:            29139841         a limit without a name
//	rl:{ alice }:  login:    29139841         the limit "login"
//	rl:{ alice }:  export:   2428@720000500   its period is told too, in ms
//	rl:{ alice }:  login:    gcra             no windows: the algorithm's name (reserved)
//
// A key has no such spaces; they are for the picture: rl:{alice}:29139841. The window
// number is the Unix time in milliseconds divided by the period in milliseconds,
// rounded down, so a person who knows the user and the time knows the key: with a
// period of one minute the second 1748390460 is in window 29139841. The last part
// stands after the last colon, so the name of a limit may itself hold colons. The
// rate of a limit is not in the key: a new rate goes on with the count it finds.
//
// # One user, one slot
//
// Redis Cluster hashes only what stands between the first "{" of a key and the
// next "}", the hash tag (Redis Cluster specification, "Hash tags"). The tag of
// every key made here is the encoded user and nothing else, so all keys of a user
// are in one hash slot, on one primary, under one clock. Three things keep it so:
// a prefix holds no brace, so the first "{" is ours; an encoded user holds no
// brace, so the tag is never cut short; and it is never empty, for an empty tag
// would make Redis hash the whole key.
//
// # How a user is written
//
// A user is any sequence of bytes, at least one. Three bytes are escaped, and
// nothing else is: "{" as %7B, "}" as %7D and "%" as %25. That is reversible, so
// two users never share a key. A user over [MaxUserBytes] bytes is replaced by
//
//	%sha256:<SHA-256 of the user, 64 lower-case hexadecimal digits>
//
// In an escaped user each "%" is followed by 25, 7B or 7D, so no literal user
// looks like that: a user who calls himself "%sha256:…" is written "%25sha256:…".
// Two long users share a key only if their SHA-256 are equal.
//
// # Parting of periods
//
// A window number alone does not tell the period: window 5 of a minute and window
// 5 of an hour would have one name. That does no harm if the two are never alive
// at one time. So the number stands alone where that can be proven, which are
// the plain periods, and "@" with the period in milliseconds follows it elsewhere.
//
//	plain:  up to 10 seconds    any whole number of milliseconds
//	        up to 10 minutes    whole seconds
//	        up to 48 hours      whole minutes
//
// The proof. A key of window w and period p is created at w·p or later and expires
// at (w+1)·p + g, by the clock of its primary, in ms, where the grace g is at most
// [MaxGrace]. Take two plain periods p < q that are d = q-p apart. Their keys of
// the same number w are never alive at one time if the first has expired when the
// second can be created:
//
//	(w+1)·p + g ≤ w·q    that is    p + g ≤ w·d
//
// At the time t the number for q is w > t/q - 1, so this holds from
//
//	t ≥ q·(q+g)/d
//
// on. By the table d is at least 1 ms, 1 s or 1 min where q is at most 10 s, 10 min
// or 48 h, whatever p is. So the right side is at most 6.1e9, 7.2e8 or 5.0e11 ms,
// and the largest of them is a day in November 1985.
//
// Clocks may be wrong, too. A promoted replica decides by its own clock, and a
// caller names the key of the window that it believes in. So the time between the
// two lives counts: from 2024 on it is at least 47 hours, and no clock that is
// off by less, by a mistaken time zone for one, brings two limits to
// one key. If any period up to 10 minutes were plain, 599999 ms and 600000 ms
// would be 27 minutes apart. A test walks through all plain periods.
//
// A name parts limits for good: limits of different names never have a key in
// common, whatever their periods.
//
// # Concurrency
//
// Everything here is a pure function of its arguments; values of [Layout] and
// [Key] may be copied, compared and used by many goroutines.
package keys
