// Package faults breaks a Redis Cluster on purpose while a load test runs, and takes
// down what the callers noticed of it.
//
// A [Fault] is what a user asks for: "kill@3s". [Prepare] finds out, before the load
// starts, whether every fault can be made on this cluster, and how: most are commands to
// the nodes; to kill, pause or cut off a node takes the [Machine] that it runs on, a
// process or a container on this computer. [Plan.Run] makes each at its time, and
// [Plan.Restore] leaves the cluster whole.
//
// A [Record] takes down the calls' outcomes and says how long which shard gave no answer:
// it is pure, all times are arguments.
//
// # Where new things go
//
// Another fault is an entry of kinds and a method of attempt; another place that nodes
// run in is a Machine and a case of FindMachine.
package faults
