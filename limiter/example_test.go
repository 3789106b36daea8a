package limiter_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/slotlimit/slotlimit/cluster"
	"github.com/slotlimit/slotlimit/cluster/clustertest"
	"github.com/slotlimit/slotlimit/limiter"
)

// clusterForExamples stands for the cluster of a real service.
func clusterForExamples() (client *cluster.Client, nodes *clustertest.Cluster, close func()) {
	nodes, err := clustertest.New()
	if err != nil {
		log.Fatal(err)
	}
	client, err = cluster.Open(context.Background(), cluster.Config{Addrs: nodes.Addrs()})
	if err != nil {
		log.Fatal(err)
	}
	return client, nodes, func() {
		client.Close()
		nodes.Close()
	}
}

func ExampleLimiter_Allow() {
	ctx := context.Background()
	client, _, closeAll := clusterForExamples()
	defer closeAll()

	lim, err := limiter.New(client, limiter.Per(2, limiter.MaxPeriod))
	if err != nil {
		log.Fatal(err)
	}
	for range 3 {
		res, err := lim.Allow(ctx, "alice")
		if err != nil {
			log.Fatal(err) // no decision was made
		}
		fmt.Println(res.Allowed, res.Count, res.Remaining)
	}
	// Output:
	// true 1 1
	// true 2 0
	// false 3 0
}

func ExampleLimiter_AllowN() {
	client, _, closeAll := clusterForExamples()
	defer closeAll()
	lim, err := limiter.New(client, limiter.Limit{Name: "rows", Rate: 1000, Period: limiter.MaxPeriod})
	if err != nil {
		log.Fatal(err)
	}
	res, err := lim.AllowN(context.Background(), "alice", 300)
	fmt.Println(res.Allowed, res.Remaining, err)
	_, err = lim.AllowN(context.Background(), "alice", 1001)
	fmt.Println(errors.Is(err, limiter.ErrCostAboveRate))
	// Output:
	// true 700 <nil>
	// true
}

// A page of mails to send: each addressee has a limit, and some are there twice.
func ExampleLimiter_AllowMany() {
	client, _, closeAll := clusterForExamples()
	defer closeAll()
	lim, err := limiter.New(client, limiter.Limit{Name: "mail", Rate: 1, Period: limiter.MaxPeriod})
	if err != nil {
		log.Fatal(err)
	}
	items := []limiter.Attempt{{User: "alice", N: 1}, {User: "bob", N: 1}, {User: "", N: 1}, {User: "alice", N: 1}}
	for i, verdict := range lim.AllowMany(context.Background(), items) {
		if verdict.Err != nil {
			fmt.Println(verdict.Err)
			continue
		}
		fmt.Println(items[i].User, verdict.Allowed, verdict.Count)
	}
	// Output:
	// alice true 1
	// bob true 1
	// keys: empty user
	// alice false 2
}

// Who is denied until the window ends is told so without asking, and counted later.
func ExampleLimiter_Flush() {
	ctx := context.Background()
	client, _, closeAll := clusterForExamples()
	defer closeAll()
	lim, err := limiter.New(client, limiter.Per(1, limiter.MaxPeriod), limiter.WithDenialCache(10_000))
	if err != nil {
		log.Fatal(err)
	}
	var key string
	for range 3 {
		res, err := lim.Allow(ctx, "alice")
		fmt.Println(res.Allowed, res.Count, "local:", res.Local, err)
		key = res.Key
	}
	if err := lim.Flush(ctx); err != nil { // before the process ends
		log.Fatal(err)
	}
	fmt.Println("in the counter:", client.Get(ctx, key).Val())
	// Output:
	// true 1 local: false <nil>
	// false 2 local: true <nil>
	// false 3 local: true <nil>
	// in the counter: 3
}

func ExampleLimiter_Peek() {
	ctx := context.Background()
	client, _, closeAll := clusterForExamples()
	defer closeAll()
	lim, err := limiter.New(client, limiter.Per(1, limiter.MaxPeriod))
	if err != nil {
		log.Fatal(err)
	}
	for range 2 {
		res, err := lim.Peek(ctx, "alice")
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println("could go on:", res.Allowed)
		lim.Allow(ctx, "alice")
	}
	// Output:
	// could go on: true
	// could go on: false
}

func ExampleLimiter_Reset() {
	ctx := context.Background()
	client, _, closeAll := clusterForExamples()
	defer closeAll()
	lim, err := limiter.New(client, limiter.Per(1, limiter.MaxPeriod))
	if err != nil {
		log.Fatal(err)
	}
	lim.Allow(ctx, "alice")
	if err := lim.Reset(ctx, "alice"); err != nil {
		log.Fatal(err)
	}
	res, err := lim.Allow(ctx, "alice")
	fmt.Println(res.Allowed, err)
	// Output: true <nil>
}

// A reply that is lost is not made up: the caller decides what "perhaps" means.
func ExampleErrAmbiguous() {
	ctx := context.Background()
	client, nodes, closeAll := clusterForExamples()
	defer closeAll()
	lim, err := limiter.New(client, limiter.PerDay(100))
	if err != nil {
		log.Fatal(err)
	}
	nodes.LoseReplies(clustertest.On(clustertest.AllNodes, "EVAL", "EVALSHA"), 1, clustertest.Cut)
	_, err = lim.Allow(ctx, "alice")
	switch {
	case errors.Is(err, limiter.ErrAmbiguous):
		fmt.Println("counted once, or not at all")
	case errors.Is(err, limiter.ErrUnavailable):
		fmt.Println("not counted")
	}
	// Output: counted once, or not at all
}

func ExampleParseLimit() {
	limit, err := limiter.ParseLimit("login=5/1h")
	fmt.Println(limit.Name, limit.Rate, limit.Period, err)
	fmt.Println(limit)
	_, err = limiter.ParseLimit("5 per hour")
	fmt.Println(err)
	// Output:
	// login 5 1h0m0s <nil>
	// login=5/1h
	// limiter: limit is not written as [NAME=]RATE/PERIOD: "5 per hour": no /
}
