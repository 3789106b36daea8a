package watch_test

import (
	"context"
	"fmt"
	"time"

	"github.com/slotlimit/slotlimit/cluster"
	"github.com/slotlimit/slotlimit/cluster/clustertest"
	"github.com/slotlimit/slotlimit/loadtest/watch"
)

// Two replicas are promoted, of which the run itself asked one, and said so before.
func ExampleStart() {
	nodes, err := clustertest.New()
	if err != nil {
		panic(err)
	}
	defer nodes.Close()
	client, err := cluster.Open(context.Background(), cluster.Config{Addrs: nodes.Addrs()})
	if err != nil {
		panic(err)
	}
	defer client.Close()

	w, err := watch.Start(context.Background(), client, time.Hour, nil)
	if err != nil {
		panic(err)
	}
	plan := w.Plan(nodes.Addr(3))
	if err := nodes.Failover(3); err != nil {
		panic(err)
	}
	plan.Done()
	if err := nodes.Failover(4); err != nil {
		panic(err)
	}
	planned := map[string]string{nodes.Addr(3): "the planned one", nodes.Addr(4): "the other one"}
	for _, e := range w.Stop() {
		fmt.Println(e.Kind, planned[e.Node], e.Graceful, e.Detail)
	}
	// Unordered output:
	// promotion the planned one true config epoch 1 -> 4
	// promotion the other one false config epoch 2 -> 5
}
