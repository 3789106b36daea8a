// Package clustertest runs a Redis Cluster of six nodes inside the process, for
// tests: it is to package cluster what net/http/httptest is to net/http.
//
//	c := clustertest.Start(t)
//	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: c.Addrs()})
//
// Each node listens on a port of its own on 127.0.0.1 and answers as a node of Redis
// 7.0 with cluster-enabled does: MOVED, ASK, TRYAGAIN, CROSSSLOT, CLUSTERDOWN, READONLY
// and NOSCRIPT in the same cases and the same words, CLUSTER, INFO, HELLO, COMMAND,
// MULTI and Lua scripts. Nodes 0, 1 and 2 start as primaries of the slots 0-5460,
// 5461-10922 and 10923-16383, nodes 3, 4 and 5 as their replicas.
//
// What a real cluster does by itself and in its own time, a test does here by a call
// that takes effect at once: [Cluster.MoveSlot], [Cluster.Failover], [Cluster.Kill],
// [Cluster.Hang]. Clocks move by [Cluster.Advance] and [Cluster.SetSkew], and go on
// by themselves meanwhile. [Cluster.LoseReplies] swallows replies of commands that
// did run, [Cluster.Fail] answers errors without running. [Cluster.Dump] shows what
// a node holds, [Cluster.Calls] what it ran, and [Cluster.Check] finds what a limiter
// must not leave behind.
//
// # Time
//
// Every node has a clock. It answers TIME, and it decides when a key is gone and how
// much is left of it; what is stored with a key is the instant of its expiry. So a
// skewed node sees the same keys expire sooner or later than its replica does. A
// primary deletes an expired key when a command names it, and a replica overlooks
// it. Nothing is done for keys that nobody names, so many keys cost nothing per command.
//
// # Where it differs from real nodes
//
//   - Replication has no delay and loses nothing, so a failover loses no acknowledged
//     write, and WAIT answers at once. What asynchronous replication loses must be
//     measured on real nodes. A restarted node has all keys of its shard.
//   - There is no gossip: all nodes, even those that were dead or hung, see the same
//     topology at once. There is no automatic failover.
//   - A script may touch keys in the slot of its declared keys only. Redis 7.0 lets it
//     touch any key that its node happens to own, which works until slots move.
//   - Scripts run on gopher-lua. Its numbers turn to text with all digits where the
//     Lua of Redis writes 1e+15. bit, struct, cmsgpack, redis.setresp(3) and
//     redis.acl_check_cmd are missing, rawset, getfenv and setfenv too. Messages of
//     syntax errors differ after their first words. A script that never ends is not
//     stopped. TIME stands still while a script or a transaction runs, as it does
//     from Redis 7.2 on.
//   - The keyspace is miniredis's: its commands, and its checks of their arguments.
//     Commands that block, SUBSCRIBE and its kin, CONFIG, and hash fields with
//     expiry are refused. DUMP and RESTORE understand strings only, and only each
//     other. Watched keys count as changed by every write command that names them.
//   - Memory of expired keys comes back only when they are named, and not all of it.
//   - There is no password and no TLS.
//
// It therefore proves nothing about counts; the tests of this module that claim
// something about counts run on real redis-server processes as well.
package clustertest
