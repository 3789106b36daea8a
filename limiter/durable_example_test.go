package limiter_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/slotlimit/slotlimit/limiter"
)

// With one replica for each primary, an acknowledged attempt stays counted when a primary dies.
func ExampleWithDurable() {
	client, nodes, stop := clusterForExamples()
	defer stop()
	lim, err := limiter.New(client, limiter.PerDay(100), limiter.WithDurable(1))
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()

	res, err := lim.Allow(ctx, "alice")
	fmt.Println(res.Count, err)

	for replica := 3; replica < 6; replica++ {
		if err := nodes.Hang(replica); err != nil {
			log.Fatal(err)
		}
	}
	_, err = lim.Allow(ctx, "alice")
	fmt.Println(errors.Is(err, limiter.ErrAmbiguous), errors.Is(err, limiter.ErrUnconfirmed))

	// Output:
	// 1 <nil>
	// true true
}
