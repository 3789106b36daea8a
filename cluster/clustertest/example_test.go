package clustertest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/slotlimit/slotlimit/cluster/clustertest"
)

func ExampleNew() {
	c, err := clustertest.New()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: c.Addrs()})
	defer client.Close()

	ctx := context.Background()
	client.Set(ctx, "rl:{alice}:29139840", 7, time.Minute)
	for node := range clustertest.Nodes {
		for _, e := range c.Dump(node) {
			fmt.Println("node", node, "slot", e.Slot, e.Key, "=", e.Value)
		}
	}
	fmt.Println("check:", c.Check())
	// Output:
	// node 0 slot 749 rl:{alice}:29139840 = 7
	// node 3 slot 749 rl:{alice}:29139840 = 7
	// check: <nil>
}

// A reply is lost: the command ran, and the caller cannot know.
func ExampleCluster_LoseReplies() {
	c, err := clustertest.New()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	node := redis.NewClient(&redis.Options{Addr: c.Addr(c.Owner(15495)), MaxRetries: -1})
	defer node.Close()

	lost := c.LoseReplies(clustertest.On(clustertest.AllNodes, "INCR"), 1, clustertest.Cut)
	err = node.Incr(context.Background(), "a").Err()
	fmt.Println("lost", lost.Hits(), "EOF:", errors.Is(err, io.EOF), "stored", c.Dump(2)[0].Value)
	// Output: lost 1 EOF: true stored 1
}

// The clock stands still until the test moves it.
func ExampleCluster_Advance() {
	noon := time.Date(2025, 5, 28, 12, 0, 0, 0, time.UTC)
	c, err := clustertest.New(clustertest.WithClock(func() time.Time { return noon }))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: c.Addrs()})
	defer client.Close()

	ctx := context.Background()
	client.Set(ctx, "a", 1, time.Minute)
	c.Advance(59 * time.Second)
	fmt.Println(client.PTTL(ctx, "a").Val(), client.Exists(ctx, "a").Val())
	c.Advance(2 * time.Second)
	fmt.Println(client.Exists(ctx, "a").Val())
	// Output:
	// 1s 1
	// 0
}

// A primary dies, and its replica takes over when the test says so.
func ExampleCluster_Failover() {
	c, err := clustertest.New()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()

	c.Kill(2)
	fmt.Println("slot 15495 is node", c.Owner(15495), "which is dead")
	if err := c.Failover(5); err != nil {
		fmt.Println(err)
	}
	fmt.Println("slot 15495 is node", c.Owner(15495))
	// Output:
	// slot 15495 is node 2 which is dead
	// slot 15495 is node 5
}

// A slot on its way: its owner answers ASK for the keys that have moved.
func ExampleCluster_BeginMove() {
	c, err := clustertest.New()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: c.Addrs()})
	defer client.Close()

	ctx := context.Background()
	client.Set(ctx, "a", 1, time.Minute)
	for _, err := range []error{c.BeginMove(15495, 0), c.MoveKey("a")} {
		if err != nil {
			fmt.Println(err)
		}
	}
	n, err := client.Incr(ctx, "a").Result()
	fmt.Println(n, err, "asked:", c.Calls(0, "ASKING"))
	// Output: 2 <nil> asked: 1
}
