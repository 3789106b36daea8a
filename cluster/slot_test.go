package cluster_test

import (
	"crypto/rand"
	mathrand "math/rand/v2"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/slotlimit/slotlimit/cluster/clustertest"
	"github.com/slotlimit/slotlimit/cluster/servertest"
	"github.com/slotlimit/slotlimit/keys"
)

// testSlots compares keys.Slot with a node's own CLUSTER KEYSLOT.
func testSlots(t *testing.T, addr string) {
	node := redis.NewClient(&redis.Options{Addr: addr})
	defer node.Close()
	names := []string{"", "{", "}", "{}", "{}{a}", "a{b}c{d}", "{{a}}", "a}b{c", "foo{}{bar}", "\x00{\x00}", "123456789"}
	for _, user := range []string{"}", "{}", "{a}b", "a}b{c", "%7B", "a:b", string(make([]byte, 64<<10)), "\xff\xfe"} {
		part, err := keys.Layout{}.User(user)
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, user, part)
	}
	for range 3000 {
		random := make([]byte, mathrand.N(40))
		rand.Read(random)
		for i := range random { // braces are rare in noise
			if random[i]%8 == 0 {
				random[i] = "{}"[random[i]/8%2]
			}
		}
		names = append(names, string(random))
	}
	pipe := node.Pipeline()
	for _, name := range names {
		pipe.ClusterKeySlot(t.Context(), name)
	}
	replies, err := pipe.Exec(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range names {
		if got, want := keys.Slot(name), replies[i].(*redis.IntCmd).Val(); int64(got) != want {
			t.Errorf("keys.Slot(%.60q) = %d, the node says %d", name, got, want)
		}
	}
}

func TestSlotsInProcess(t *testing.T) { testSlots(t, clustertest.Start(t).Addr(0)) }

func TestSlotsOnServers(t *testing.T) { testSlots(t, servertest.Shared(t).Addrs()[0]) }
