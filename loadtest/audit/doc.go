// Package audit reconciles what callers of a rate limiter were told with what the
// nodes of the cluster hold, and gives a [Verdict] of named checks.
//
// It is pure: it talks to no network, reads no clock and prints nothing. A [Ledger]
// takes down what callers are told while the load runs, a [Book] what passes over the
// nodes find, and [Reconcile] compares the two.
//
// # What is checked
//
//	counters   acknowledged <= stored <= acknowledged + ambiguous, per user and window;
//	           and no counter that nobody was told of
//	limit      allowed = min(rate, acknowledged), per user and window
//	placement  a key sits on the primary that owns its slot and nowhere else, all keys
//	           of a user are in one slot, and client and server compute the same slot
//	spread     users and requests per shard against the shard's share of the slots
//	expiry     every counter expires between its window's end and the grace after it
//
// Acknowledged is a request whose caller got a decision, ambiguous one whose reply was
// lost, so that it may or may not have been counted, and unavailable one that surely
// was not. Requests are of cost 1.
//
// # Counters that are gone
//
// A counter lives until its window's end plus the grace, so a run that is longer than
// that cannot read all of them at its end. A counter is believed if it was read after
// its window had ended, by the clock of the node that holds it, or in the final pass,
// which starts when the last call has come back. One that is missing is taken as 0 if
// a pass visited its primary while it should have been there. Otherwise nobody can say,
// and the counters check fails and says that: what was not read is not proven.
//
// # Where new things go
//
// A check is a method of reconciliation with a file of its own, listed in checks. An
// algorithm whose counters are no plain integers needs a field in [Counter] and its own
// rules for counters and limit; placement, spread and expiry stay.
package audit
