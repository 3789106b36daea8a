// Package audit reconciles what callers of a rate limiter were told with what the
// nodes of the cluster hold, and gives a [Verdict] of named checks.
//
// It is pure: it talks to no network, prints nothing, and reads no clock, save for a
// [Ledger] that was not told the time. A [Ledger] takes down what callers are told while
// the load runs, a [Book] what passes over the nodes find, and [Reconcile] compares the two.
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
// # Faults
//
// While nodes die and slots move, three things are kept apart, of each counter:
//
//   - Over-count, stored > acknowledged + ambiguous, fails always. Nothing that happens to a cluster counts
//     twice; only a limiter does.
//   - Loss, stored < acknowledged or no counter at all, is what asynchronous replication and a restart without
//     persistence do. It is explained if an [Event] that can lose (an unplanned promotion, a restart, the return of a
//     primary that had been replaced) hit the shard that held the counter's slot between the counter's
//     first acknowledgement and its reading. Then it is told in [Verdict.Losses], with what may have taken it, and
//     fails the run only if [History.Durable]. A loss without such an event fails always. Where nothing was
//     ambiguous and no such event hit the slot, the counter has to be equal, as in a run without faults.
//   - Ambiguity is counted in [Verdict.Ambiguities], by shard and cause.
//
// A counter that lost counts lets as many attempts pass again. So where an event explains it, the limit check
// takes allowed <= rate + lost, with lost at most acknowledged + ambiguous - stored; the
// lower bound stays.
//
// A key out of place in a pass that was not the last is forgiven if its slot changed hands since, or an event hit it: the
// nodes' pictures differ for a moment then. In the final pass nothing is forgiven, and a key
// on two primaries is found too.
//
// # Where new things go
//
// A check is a method of reconciliation with a file of its own, listed in checks. An
// algorithm whose counters are no plain integers needs a field in [Counter] and its own
// rules for counters and limit; placement, spread and expiry stay.
package audit
