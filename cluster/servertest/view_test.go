package servertest

import (
	"testing"

	"github.com/redis/go-redis/v9"
)

// whole is what four nodes, two primaries and a replica of each, say when all is well.
func whole() []view {
	nodes := make([]view, 4)
	for i := range nodes {
		nodes[i] = view{id: string(rune('a' + i)), ok: true, known: 4, primary: i < 2, linkUp: true, shards: []redis.ClusterSlot{
			{Start: 0, End: 99, Nodes: []redis.ClusterNode{{ID: "a"}, {ID: "c"}}},
			{Start: 100, End: slots - 1, Nodes: []redis.ClusterNode{{ID: "b"}, {ID: "d"}}},
		}}
	}
	return nodes
}

func TestAgree(t *testing.T) {
	if err := agree(whole()); err != nil {
		t.Fatal(err)
	}
	everywhere := func(change func(shards []redis.ClusterSlot)) func([]view) {
		return func(nodes []view) {
			for i := range nodes {
				change(nodes[i].shards)
			}
		}
	}
	for name, spoil := range map[string]func([]view){
		"one sees slots unserved":   func(n []view) { n[3].ok = false },
		"one knows fewer":           func(n []view) { n[2].known = 3 },
		"one sees another owner":    func(n []view) { n[1].shards[0].Nodes[0].ID = "b" },
		"one sees another boundary": func(n []view) { n[1].shards[0].End, n[1].shards[1].Start = 49, 50 },
		"one sees no replica":       func(n []view) { n[0].shards[0].Nodes = n[0].shards[0].Nodes[:1] },
		"a node has no part":        everywhere(func(s []redis.ClusterSlot) { s[0].Nodes = s[0].Nodes[:1] }),
		"two replicas and none": everywhere(func(s []redis.ClusterSlot) {
			s[1].Nodes = append(s[1].Nodes[:2:2], s[0].Nodes[1])
			s[0].Nodes = s[0].Nodes[:1]
		}),
		"a primary has no slots": func(n []view) {
			n[3].primary = true
			everywhere(func(s []redis.ClusterSlot) { s[1].Nodes[1].ID = "c" })(n)
		},
		"a replica is a primary to itself": func(n []view) { n[2].primary = true },
		"a primary is a replica to itself": func(n []view) { n[0].primary = false },
	} {
		nodes := whole()
		spoil(nodes)
		if agree(nodes) == nil {
			t.Errorf("%s: whole all the same", name)
		}
	}
}

func TestInStep(t *testing.T) {
	for _, tt := range []struct {
		linkUp bool
		offset int64
		want   bool
	}{
		{true, 100, true},
		{true, 101, true},
		{true, 99, false},
		{false, 100, false},
	} {
		if got := (view{linkUp: tt.linkUp, offset: tt.offset}).inStep(100) == nil; got != tt.want {
			t.Errorf("connected %t, at %d of 100: in step %t", tt.linkUp, tt.offset, got)
		}
	}
}
