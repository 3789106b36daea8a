package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/redis/go-redis/v9"

	"github.com/slotlimit/slotlimit/cluster"
	"github.com/slotlimit/slotlimit/cluster/clustertest"
)

func ExampleOpen() {
	nodes, err := clustertest.New() // stands for the cluster of a real service
	if err != nil {
		log.Fatal(err)
	}
	defer nodes.Close()

	client, err := cluster.Open(context.Background(), cluster.Config{Addrs: nodes.Addrs()[:1]})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	topology, err := client.Topology(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	for _, shard := range topology.Shards {
		fmt.Println(shard.Slots, "on a primary with", len(shard.Replicas), "replica")
	}
	// Output:
	// [slots 0-5460] on a primary with 1 replica
	// [slots 5461-10922] on a primary with 1 replica
	// [slots 10923-16383] on a primary with 1 replica
}

func ExampleWrap() {
	nodes, err := clustertest.New()
	if err != nil {
		log.Fatal(err)
	}
	defer nodes.Close()
	own := redis.NewClusterClient(&redis.ClusterOptions{Addrs: nodes.Addrs(), ContextTimeoutEnabled: true})
	defer own.Close()

	client, err := cluster.Wrap(own)
	if err != nil {
		log.Fatal(err)
	}
	script := cluster.NewScript(`return {redis.call('INCRBY', KEYS[1], ARGV[1])}`)
	reply, err := client.Run(context.Background(), cluster.Call{Script: script, Key: "visits", Args: []int64{3}})
	fmt.Println(reply, err)
	// Output: [3] <nil>
}

func ExampleClient_Run() {
	nodes, err := clustertest.New()
	if err != nil {
		log.Fatal(err)
	}
	defer nodes.Close()
	client, err := cluster.Open(context.Background(), cluster.Config{Addrs: nodes.Addrs()})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	call := cluster.Call{
		Script: cluster.NewScript(`return {redis.call('INCR', KEYS[1])}`),
		Key:    "visits",
	}
	reply, err := client.Run(context.Background(), call)
	fmt.Println(reply, err)

	// The script runs, its reply is lost: it is not sent again.
	nodes.LoseReplies(clustertest.On(clustertest.AllNodes, "EVALSHA"), 1, clustertest.Cut)
	_, err = client.Run(context.Background(), call)
	fmt.Println("ambiguous:", errors.Is(err, cluster.ErrAmbiguous))

	reply, err = client.Run(context.Background(), call)
	fmt.Println(reply, err)
	// Output:
	// [1] <nil>
	// ambiguous: true
	// [3] <nil>
}
