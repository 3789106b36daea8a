// Package watch notices what happens to a cluster while a load test runs, whoever
// causes it: promotions, restarts, slots that move, nodes that go down and come up.
//
//	w, err := watch.Start(ctx, client, 200*time.Millisecond, func(e audit.Event) { ... }) // before the load
//	...
//	plan := w.Plan(replica)  // before a CLUSTER FAILOVER without FORCE of the run's own
//	if sent failed { plan.Drop() } else { wait until it is the primary; plan.Done() }
//	...
//	last, err := reader.final(ctx)   // the counters, with Pass.To = time.Now()
//	history.Events = w.Stop()        // after the final pass: it takes one more look
//
// The function gets each event when it is noticed, from one goroutine, for a live line and
// a timeline; nil if nobody wants that. The list of Stop is what the audit needs: there, an
// event may have got a later To, and a promotion that a [Plan] covers is Graceful. Without
// a plan, a CLUSTER FAILOVER looks as every other promotion does. Faults need no other mark: a
// kill, a takeover, a pause and a restart are noticed, and so are moves of slots.
//
// The addresses in events are those of the topology, as the shards of the audit have them.
//
// # How
//
// Several times a second every node is asked for its run id, its number of keys, and
// its view of the cluster, all nodes at once and each with a time limit of its own, so a node
// that hangs delays the look by that and no more. [Look] is the joint picture, and
// [Changes] the difference of two, which is a pure function.
//
// Views differ while news spreads. Who owns a slot is whom the view with the highest
// config epoch names: that is the rule by which the nodes come to agree.
//
//   - promotion: a slot has another owner, which was a replica before. Or the owner's config epoch
//     and replication id are new ones: it lost its slots and got them back between two looks.
//     While the former primary believes that it owns the slots, it goes on acknowledging counts that
//     will be thrown away, so the promotion lasts until it has learnt.
//   - restart: the run id is another one. The slots are those that the node owned on either
//     side of it, since a process without persistence comes back empty and its replica copies that.
//   - slots moved: a slot has another owner, which was a primary before.
//   - node down: two looks in a row without an answer, or a refused connection.
//   - node up: it answers again with the same run id. If a replica took its slots meanwhile (it hung,
//     or was cut off), Slots names them: it may have acknowledged before it learnt of that.
package watch
