// Package limiter limits how often users may do things, for services that share a
// Redis Cluster.
//
//	client, err := cluster.Open(ctx, cluster.Config{Addrs: []string{"127.0.0.1:7001"}})
//	lim, err := limiter.New(client, limiter.PerMinute(100))
//
//	res, err := lim.Allow(ctx, "alice")
//	if err != nil {
//		// no decision was made: see ErrUnavailable and ErrAmbiguous
//	}
//	if !res.Allowed {
//		// denied, for res.RetryAfter
//	}
//
// Four promises, each held by a test and by the load test on a real cluster:
//
//   - An attempt is counted once. A script whose reply was lost is not sent again.
//   - What is not known is not guessed: a lost reply is ErrAmbiguous. For every
//     counter, acknowledged <= stored <= acknowledged + ambiguous.
//   - The primary that holds a user's counter decides by its own clock which window
//     it is. The clocks of the callers may be wrong by any amount.
//   - A denial is a value, an error means that no decision was made.
//
// # When there is no decision
//
// Whether to go on without one is the service's choice: refuse where the limit protects
// something (fail closed), go on where an outage of the limiter must not be one of
// the service (fail open). After ErrUnavailable the same attempt may be made again; after
// ErrAmbiguous it may then count twice.
//
// # How a decision is made
//
// The key of the counter holds the user as hash tag and the number of the window
// (package keys). The limiter guesses the window from its own clock and what it
// learned of the node's, and sends one script (lua/fixed_window.lua) with one key.
// The node counts if its clock agrees, and returns count and time left together; if
// not, it writes nothing and tells its time, and the limiter asks again.
//
// # Calls that come at the same time
//
// One process has one call for a user and limit on its way at a time. Attempts that are made
// meanwhile wait, and leave together when it is back, in one call with the sum of their
// costs. The counter's value after the call, less the costs of those behind it, is
// what each would have been told alone, so the answers are dealt out in order of
// arrival, and a user who makes thousands of attempts at a time costs one round trip at a
// time. An attempt that finds nothing on its way leaves at once.
//
// A caller who gives up while it waits is taken out of the sum, and gets ErrUnavailable: it
// was not counted. Once the call is sent it is ErrAmbiguous.
//
// With [WithDenialCache], users who are denied until their window ends are answered without
// a call, and counted later.
//
// # Where another algorithm goes
//
// A file with its script in lua, its contract above the script; a Go file beside
// fixedwindow.go that implements algorithm, which is all that coalescing and the
// other parts know of it, and for which [New] has to choose; a field in [Limit] that
// selects it, in the text form too; the script in [Scripts]; the name of its keys in package
// keys; its promises in limitertest and its checks in loadtest/audit. One key in each
// call: a script with two fails for as long as its slot migrates.
package limiter
