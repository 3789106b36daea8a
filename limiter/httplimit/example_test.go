package httplimit_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/slotlimit/slotlimit/cluster"
	"github.com/slotlimit/slotlimit/cluster/clustertest"
	"github.com/slotlimit/slotlimit/limiter"
	"github.com/slotlimit/slotlimit/limiter/httplimit"
)

func Example() {
	nodes, err := clustertest.New() // stands for the cluster of a real service
	if err != nil {
		log.Fatal(err)
	}
	defer nodes.Close()
	client, err := cluster.Open(context.Background(), cluster.Config{Addrs: nodes.Addrs()})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	lim, err := limiter.New(client, limiter.Per(2, limiter.MaxPeriod))
	if err != nil {
		log.Fatal(err)
	}
	limited := httplimit.New(lim, httplimit.Header("X-API-Key"))
	api := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "hello") })
	server := httptest.NewServer(limited(api))
	defer server.Close()

	for range 3 {
		req, _ := http.NewRequest("GET", server.URL, nil)
		req.Header.Set("X-API-Key", "alice's")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			log.Fatal(err)
		}
		resp.Body.Close()
		fmt.Println(resp.Status, "remaining", resp.Header.Get("X-RateLimit-Remaining"))
	}
	// Output:
	// 200 OK remaining 1
	// 200 OK remaining 0
	// 429 Too Many Requests remaining 0
}
