package limiter_test

import (
	"context"
	"fmt"
	"log"

	"github.com/slotlimit/slotlimit/cluster"
	"github.com/slotlimit/slotlimit/cluster/clustertest"
	"github.com/slotlimit/slotlimit/limiter"
)

// The README shows a part of this example, and TestReadme holds it to that.
func Example() {
	nodes, err := clustertest.New() // stands for the cluster of a real service
	if err != nil {
		log.Fatal(err)
	}
	defer nodes.Close()
	addrs := nodes.Addrs()

	ctx := context.Background()
	client, err := cluster.Open(ctx, cluster.Config{Addrs: addrs})
	if err != nil {
		log.Fatal(err) // no cluster there, or a slot is not served: the error says which
	}
	defer client.Close()
	lim, err := limiter.New(client, limiter.PerMinute(100))
	if err != nil {
		log.Fatal(err)
	}
	res, err := lim.Allow(ctx, "alice")
	if err != nil {
		log.Print(err) // no decision was made: limiter.ErrUnavailable or ErrAmbiguous
	} else if !res.Allowed {
		log.Print("denied, come back in ", res.RetryAfter)
	}

	fmt.Println(res.Allowed, res.Count, res.Remaining)
	// Output: true 1 99
}
