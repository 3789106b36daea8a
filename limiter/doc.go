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
// # How a decision is made
//
// The key of the counter holds the user as hash tag and the number of the window
// (package keys). The limiter guesses the window from its own clock and what it
// learned of the node's, and sends one script (lua/fixed_window.lua) with one key.
// The node counts if its clock agrees, and returns count and time left together; if
// not, it writes nothing and tells its time, and the limiter asks again.
//
// # Where another algorithm goes
//
// A file with its script in lua, its contract above the script; a Go file beside
// fixedwindow.go with the encoding of the arguments and the decoding of the reply;
// and a field in [Limit] that selects it. One key in each call: a script with two
// fails for as long as its slot migrates.
package limiter
