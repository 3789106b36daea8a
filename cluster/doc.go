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
//	another error reply (OOM, NOPERM, WRONGTYPE...)  no                     ErrUnavailable
//	the deadline came first                          no                     ErrUnavailable
//	reset, EOF or time-out after the sending         perhaps                ErrAmbiguous
//	a reply, but no confirmation of a Durable call   yes, not yet for good  ErrAmbiguous
//
// A service that has no client yet calls [Open]; one that has, [Wrap]. The other
// way round, a [Client] is a go-redis client: it embeds [redis.UniversalClient].
//
// go-redis logs every failed dial to standard error; [redis.SetLogger] is the service's
// to call, if it has better things to do with that.
//
// Calls for one primary leave one by one today, each on a connection of its own
// from go-redis's pool. Batches per primary belong between [Client.Run] and the
// sending of one call (the method send), and change nothing for a caller.
package cluster
