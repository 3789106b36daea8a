// Package cluster knows of nodes, hash slots, redirects, sending and retries,
// so that package limiter need not.
//
// Its promise is about counting. A script that counts must run once for each
// call, and a client library that resends after a lost reply breaks that without
// saying so: the first sending may have run. [Client.Run] therefore sends a
// script again only after proof that it did not run, and otherwise says
// [ErrAmbiguous]:
//
//	what happened                                    did the script run?    Run
//	a reply                                          yes                    returns it
//	MOVED, ASK                                       no                     follows, at once
//	NOSCRIPT                                         no                     sends the text (EVAL)
//	TRYAGAIN, CLUSTERDOWN, LOADING, MASTERDOWN,
//	READONLY, BUSY, max number of clients            no                     sends again, with backoff
//	refused connection, no free connection           no                     sends again, with backoff
//	too many calls in flight to the node             no                     sends again, with backoff
//	another error reply (OOM, NOPERM, WRONGTYPE...)  no                     ErrUnavailable
//	the deadline came first                          no                     ErrUnavailable
//	reset, EOF or time-out after the sending         perhaps                ErrAmbiguous; a Repeatable call is sent again
//	a reply, but no confirmation of a Durable call   yes, not yet for good  ErrAmbiguous
//
// A service that has no client yet calls [Open]; one that has, [Wrap]. The other
// way round, a [Client] is a go-redis client: it embeds [redis.UniversalClient].
//
// go-redis logs every failed dial to standard error; [redis.SetLogger] is the service's
// to call, if it has better things to do with that.
//
// # Batches
//
// All calls for one primary share a connection, the lane. A call that finds nothing
// under way there is written and read by its caller, at once, as a plain command would
// be. Calls that come in the meantime leave together in one write, and so do those that
// come during that: batches are as large as the primary is behind, and nobody waits
// for one to fill. Nothing else is shared: each call has its own deadline, its own
// redirects and its own error, and a primary that hangs holds up nobody else's calls.
//
// What a caller may notice:
//   - A connection that breaks takes all the calls on it with it: those not written
//     leave on the next one, the others are ErrAmbiguous.
//   - A call that is cancelled before it is written is not sent, and one that is
//     cancelled after that is ErrAmbiguous. Neither disturbs the others. A call that is alone
//     on its way ends at once, one among others within 5 ms, and for each thousand
//     calls in flight to the node 5 ms more: contexts are looked at now and then.
//   - A node holds at most 16,384 calls in flight, beyond which calls wait, and are
//     ErrUnavailable when their time is up.
//   - go-redis's hooks see nothing of it; [Client.Unbatched] is the way past it.
//
// Each batch ends with PING and a number, which comes back behind the replies: TCP loses
// nothing in between, but a proxy may, and then each caller would be given the
// reply of the next. The order of reading: [Client.Run] (run.go), sendBatched (batched.go: redirects),
// lane.go, writer.go, reader.go, reply.go.
package cluster
