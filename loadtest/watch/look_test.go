package watch

import (
	"reflect"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/slotlimit/slotlimit/loadtest/audit"
)

const nodesOfA = `a 10.0.0.1:7001@17001,host-a myself,master - 0 0 3 connected 0-99 101 [99->-b] [200-<-b]
b 10.0.0.2:7002@17002 master,fail? - 0 0 5 connected 100 102-16383
a2 10.0.0.3:7003@17003 slave a 0 0 3 connected
gone :0@0 master,noaddr - 0 0 1 disconnected
`

func TestParseNodes(t *testing.T) {
	got, err := parseNodes(nodesOfA)
	if err != nil {
		t.Fatal(err)
	}
	want := []line{
		{id: "a", addr: "10.0.0.1:7001", primary: true, epoch: 3,
			slots: []audit.SlotRange{{First: 0, Last: 99}, {First: 101, Last: 101}}, importing: []audit.SlotRange{{First: 200, Last: 200}}},
		{id: "b", addr: "10.0.0.2:7002", primary: true, epoch: 5,
			slots: []audit.SlotRange{{First: 100, Last: 100}, {First: 102, Last: 16383}}},
		{id: "a2", addr: "10.0.0.3:7003", primaryID: "a", epoch: 3},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	for _, bad := range []string{
		"a 10.0.0.1:7001@17001 master - 0 0 3", "a x:1@2 master - 0 0 three connected", "a x:1@2 master - 0 0 3 connected 5-16384",
		"a x:1@2 master - 0 0 3 connected -5", "a x:1@2 master - 0 0 3 connected five", "a x:1@2 master - 0 0 3 connected [x-<-b]",
	} {
		if got, err := parseNodes(bad); err == nil {
			t.Errorf("%q: %+v", bad, got)
		}
	}
}

// The view with the highest epoch decides, in whatever order the views come.
func TestTheHighestEpochOwns(t *testing.T) {
	old := line{id: "a", primary: true, epoch: 3, slots: []audit.SlotRange{{First: 0, Last: 9}}}
	fresh := line{id: "a2", primary: true, epoch: 7, slots: []audit.SlotRange{{First: 0, Last: 8}}}
	replica := line{id: "z", epoch: 9, slots: []audit.SlotRange{{First: 0, Last: 9}}}
	for _, views := range [][]line{{old, fresh, replica}, {replica, fresh, old}} {
		var l Look
		for _, v := range views {
			v.claim(&l)
		}
		if l.Owners[0] != "a2" || l.Owners[9] != "a" || l.Owners[10] != "" || l.epoch("a2") != 7 {
			t.Errorf("owners %q, %q, %q, epoch %d", l.Owners[0], l.Owners[9], l.Owners[10], l.epoch("a2"))
		}
	}
}

// A former primary that is cut off from its peers, and the only one that answers, does not get its slots back.
func TestOldNewsIsNone(t *testing.T) {
	before := calm()
	before.promote("a2", 9, false)
	for slot := range 5461 {
		before.epochs[slot] = 9
	}
	for _, test := range []struct {
		name   string
		change func(l *Look)
		want   string
	}{
		{"no news", func(l *Look) { l.give("", 0, 5460) }, "a2"},
		{"older, and the owner is silent", func(l *Look) { l.give("a", 0, 5460); l.miss("a2", 1, second(0)) }, "a2"},
		{"newer", func(l *Look) {
			l.give("b", 0, 5460)
			l.miss("a2", 1, second(0))
			for slot := range 5461 {
				l.epochs[slot] = 10
			}
		}, "b"},
		{"a move without a higher epoch, which the owner confirms", func(l *Look) { l.give("b", 0, 5460) }, "b"},
	} {
		after := before.next()
		clear(after.epochs[:])
		test.change(after)
		after.remember(before)
		if after.Owners[5] != test.want {
			t.Errorf("%s: owner %q, want %q", test.name, after.Owners[5], test.want)
		}
	}
}

// While the former primary answers and does not know, what it acknowledges is lost: the promotion lasts.
func TestPromotionLastsUntilTheFormerPrimaryKnows(t *testing.T) {
	looks := []*Look{calm()}
	step := func(change func(l *Look)) {
		l := looks[len(looks)-1].next()
		change(l)
		looks = append(looks, l)
	}
	step(func(l *Look) { l.promote("a2", 9, false) })
	step(func(*Look) {})
	step(func(l *Look) {
		l.edit("a", func(n *Node) { n.Primary, n.PrimaryID, n.Slots = false, "a2", nil })
	})
	step(func(l *Look) { l.promote("b2", 10, true) })
	var w Watcher
	for i := range looks[1:] {
		w.prolong(looks[i], looks[i+1])
		w.events = append(w.events, Changes(looks[i], looks[i+1])...)
	}
	var got []string
	for _, e := range w.events {
		got = append(got, show(e))
	}
	want := "0-4 promotion of a2:1 (config epoch 1 -> 9) was a:1 0-5460\n" +
		"3-5 promotion of b2:1 (config epoch 2 -> 10) was b:1 5461-10921"
	if g := strings.Join(got, "\n"); g != want {
		t.Errorf("got\n%s\nwant\n%s", g, want)
	}
}

// A node that only the others name is asked too, under the name that the topology has for it.
func TestLearnsNodes(t *testing.T) {
	view, err := parseNodes(nodesOfA)
	if err != nil {
		t.Fatal(err)
	}
	a := asker{addrs: map[string]string{"a": "host-a:7001"}}
	fresh := a.learn(map[string]answer{"a": {view: view, serving: []redis.ClusterSlot{
		{Start: 0, End: 99, Nodes: []redis.ClusterNode{{ID: "a", Addr: "host-a:7001"}}},
		{Start: 102, End: 16383, Nodes: []redis.ClusterNode{{ID: "b", Addr: "host-b:7002"}}},
	}}})
	want := map[string]string{"b": "host-b:7002", "a2": "10.0.0.3:7003"}
	if !reflect.DeepEqual(fresh, want) || a.addrs["a"] != "host-a:7001" {
		t.Errorf("to ask: %v, want %v; known: %v", fresh, want, a.addrs)
	}
}

func TestInfo(t *testing.T) {
	if got := field("# Server\r\nrun_id:abc\r\nport:1\r\n", "run_id:"); got != "abc" {
		t.Errorf("run id %q", got)
	}
	if got := keysOf("# Keyspace\r\ndb0:keys=12,expires=3,avg_ttl=0\r\n"); got != 12 {
		t.Errorf("%d keys", got)
	}
	if got := keysOf("# Keyspace\r\n"); got != 0 {
		t.Errorf("%d keys in an empty node", got)
	}
}

func TestPlansCover(t *testing.T) {
	e := audit.Event{Kind: audit.Promotion, Node: "a2:1", From: second(2), To: second(4)}
	for _, test := range []struct {
		name string
		plan Plan
		want bool
	}{
		{"begun before, not done", Plan{node: "a2:1", from: second(1)}, true},
		{"within the event", Plan{node: "a2:1", from: second(3), to: second(3)}, true},
		{"begun after", Plan{node: "a2:1", from: second(5)}, false},
		{"done before", Plan{node: "a2:1", from: second(0), to: second(1)}, false},
		{"another node", Plan{node: "b2:1", from: second(1)}, false},
		{"dropped", Plan{node: "a2:1", from: second(1), dropped: true}, false},
	} {
		w := Watcher{plans: []*Plan{&test.plan}}
		if got := w.planned(e); got != test.want {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
		restart := e
		restart.Kind = audit.Restart
		if w.planned(restart) {
			t.Errorf("%s: a restart is planned", test.name)
		}
	}
}
