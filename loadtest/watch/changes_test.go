package watch

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/slotlimit/slotlimit/loadtest/audit"
)

var began = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func second(n int) time.Time { return began.Add(time.Duration(n) * time.Second) }

// calm is a look at second 0 to 1: three primaries, "a", "b" and "c", each with a replica, "a2", "b2", "c2".
func calm() *Look {
	l := &Look{From: second(0), To: second(1), Nodes: map[string]Node{}}
	for i, id := range []string{"a", "b", "c"} {
		first, last := i*5461, i*5461+5460+i/2 // the last one has a slot more
		l.Nodes[id] = Node{
			ID: id, Addr: id + ":1", Seen: second(0), RunID: "run-" + id, ReplID: "stream-" + id, Keys: 7,
			Primary: true, Epoch: int64(i) + 1, Slots: []audit.SlotRange{{First: first, Last: last}},
		}
		replica := id + "2"
		l.Nodes[replica] = Node{
			ID: replica, Addr: replica + ":1", Seen: second(0), RunID: "run-" + replica, ReplID: "stream-" + id, Keys: 7,
			PrimaryID: id, Epoch: int64(i) + 1,
		}
		l.give(id, first, last)
	}
	return l
}

// next is a look a second later at which nothing has changed yet.
func (l *Look) next() *Look {
	n := *l
	n.From, n.To = l.From.Add(time.Second), l.To.Add(time.Second)
	n.Nodes = maps.Clone(l.Nodes)
	for id := range n.Nodes {
		n.edit(id, func(node *Node) { node.Seen = n.From })
	}
	return &n
}

func (l *Look) edit(id string, change func(*Node)) {
	n := l.Nodes[id]
	change(&n)
	l.Nodes[id] = n
}

func (l *Look) give(id string, first, last int) {
	for slot := first; slot <= last; slot++ {
		l.Owners[slot] = id
	}
}

// promote makes a replica the owner of its primary's slots; told says that the former one knows.
func (l *Look) promote(id string, epoch int64, told bool) {
	from := l.Nodes[id].PrimaryID
	slots := l.owned(from)
	for slot, owner := range l.Owners {
		if owner == from {
			l.Owners[slot] = id
		}
	}
	l.edit(id, func(n *Node) {
		n.Primary, n.PrimaryID, n.Epoch, n.Slots, n.ReplID = true, "", epoch, slots, "stream-"+id+fmt.Sprint(epoch)
	})
	if told {
		l.edit(from, func(n *Node) { n.Primary, n.PrimaryID, n.Slots = false, id, nil })
	}
}

func (l *Look) miss(id string, looks int, since time.Time) {
	l.edit(id, func(n *Node) { n.Missed, n.Seen = looks, since })
}

// show puts an event in one line, with the seconds between which it was.
func show(e audit.Event) string {
	s := fmt.Sprintf("%d-%d %v", int(e.From.Sub(began).Seconds()), int(e.To.Sub(began).Seconds()), e)
	if e.Was != "" {
		s += " was " + e.Was
	}
	for _, r := range e.Slots {
		s += fmt.Sprintf(" %d-%d", r.First, r.Last)
	}
	if e.Graceful {
		s += " graceful"
	}
	return s
}

// later are two looks, a second apart: before, as made by the first function from calm, and after, as made by the
// second one from before.
var later = []struct {
	name          string
	before, after func(l *Look)
	want          []string
}{
	{"nothing", nil, nil, nil},
	{"promotion", nil, func(l *Look) { l.promote("a2", 9, true) },
		[]string{"0-2 promotion of a2:1 (config epoch 1 -> 9) was a:1 0-5460"}},
	{"promotion, and the former primary is down", nil, func(l *Look) {
		l.promote("a2", 9, false)
		l.miss("a", 2, second(0))
	}, []string{
		"0-2 a:1 down 0-5460",
		"0-2 promotion of a2:1 (config epoch 1 -> 9) was a:1 0-5460",
	}},
	{"promotion of which the replica itself did not know when it was asked", nil, func(l *Look) {
		l.promote("a2", 9, true)
		l.edit("a2", func(n *Node) { n.Primary, n.PrimaryID, n.Slots, n.Epoch = false, "a", nil, 1 })
		for slot := range 5461 {
			l.epochs[slot] = 9
		}
	}, []string{"0-2 promotion of a2:1 (config epoch 1 -> 9) was a:1 0-5460"}},
	{"the replica knows a look later", func(l *Look) {
		l.promote("a2", 9, true)
		l.edit("a2", func(n *Node) { n.Primary, n.PrimaryID, n.Slots, n.Epoch, n.ReplID = false, "a", nil, 1, "stream-a" })
	}, func(l *Look) {
		l.edit("a2", func(n *Node) { n.Primary, n.PrimaryID, n.Epoch, n.ReplID = true, "", 9, "stream-a29" })
	}, nil},
	{"promotion back of a primary that had not heard", func(l *Look) { l.promote("a2", 9, false) }, func(l *Look) {
		l.give("a", 0, 5460)
		l.edit("a", func(n *Node) { n.Epoch = 10 })
	}, []string{"0-2 promotion of a:1 (config epoch 9 -> 10) was a2:1 0-5460"}},
	{"promotion while a slot was on its way to the former primary", func(l *Look) {
		l.edit("a", func(n *Node) { n.Importing = []audit.SlotRange{{First: 9000, Last: 9000}} })
	}, func(l *Look) { l.promote("a2", 9, true) },
		[]string{"0-2 promotion of a2:1 (config epoch 1 -> 9) was a:1 0-5460 9000-9000"}},
	{"there and back between two looks", nil, func(l *Look) {
		l.edit("b", func(n *Node) { n.Epoch, n.ReplID = 9, "another" })
	}, []string{"0-2 promotion of b:1 (config epoch 2 -> 9, lost its slots and got them back between two looks) 5461-10921"}},
	{"a higher epoch alone", nil, func(l *Look) { l.edit("b", func(n *Node) { n.Epoch = 9 }) }, nil},
	{"two promotions at once", nil, func(l *Look) { l.promote("a2", 9, true); l.promote("c2", 10, true) }, []string{
		"0-2 promotion of a2:1 (config epoch 1 -> 9) was a:1 0-5460",
		"0-2 promotion of c2:1 (config epoch 3 -> 10) was c:1 10922-16383",
	}},
	{"a node gone by a name that nobody knew as its primary", func(l *Look) {
		l.edit("a2", func(n *Node) { n.PrimaryID = "b" })
	}, func(l *Look) {
		l.give("a2", 0, 5460)
		l.edit("a2", func(n *Node) { n.Primary, n.Epoch = true, 9 })
	}, []string{"0-2 promotion of a2:1 (config epoch 1 -> 9) was a:1 0-5460"}},

	{"restart of a primary", nil, func(l *Look) { l.edit("a", func(n *Node) { n.RunID = "again" }) },
		[]string{"0-2 restart of a:1 (run id run-a -> again) 0-5460"}},
	{"restart of a primary that comes back empty", nil, func(l *Look) {
		l.edit("a", func(n *Node) { n.RunID, n.Keys, n.ReplID = "again", 0, "another" })
	}, []string{"0-2 restart of a:1 (run id run-a -> again, came back empty and had 7 keys) 0-5460"}},
	{"restart of a primary that was down", func(l *Look) { l.miss("a", 3, second(-2)) }, func(l *Look) {
		l.edit("a", func(n *Node) { n.RunID, n.Missed = "again", 0 })
	}, []string{"-2-2 restart of a:1 (run id run-a -> again) 0-5460"}},
	{"restart of a primary with a slot on its way there", func(l *Look) {
		l.edit("a", func(n *Node) { n.Importing = []audit.SlotRange{{First: 9000, Last: 9000}} })
	}, func(l *Look) { l.edit("a", func(n *Node) { n.RunID, n.Importing = "again", nil }) },
		[]string{"0-2 restart of a:1 (run id run-a -> again) 0-5460 9000-9000"}},
	{"restart of a replica", nil, func(l *Look) { l.edit("a2", func(n *Node) { n.RunID = "again" }) },
		[]string{"0-2 restart of a2:1 (run id run-a2 -> again)"}},
	{"restart and promotion", nil, func(l *Look) {
		l.promote("a2", 9, true)
		l.edit("a", func(n *Node) { n.RunID = "again" })
	}, []string{
		"0-2 restart of a:1 (run id run-a -> again) 0-5460",
		"0-2 promotion of a2:1 (config epoch 1 -> 9) was a:1 0-5460",
	}},

	{"slots moved", nil, func(l *Look) { l.give("b", 100, 199) },
		[]string{"0-2 slots moved to b:1 (100 slots) was a:1 100-199 graceful"}},
	{"slots moved to two primaries", nil, func(l *Look) {
		l.give("b", 100, 199)
		l.give("b", 300, 300)
		l.give("c", 5461, 5462)
	}, []string{
		"0-2 slots moved to b:1 (101 slots) was a:1 100-199 300-300 graceful",
		"0-2 slots moved to c:1 (2 slots) was b:1 5461-5462 graceful",
	}},
	{"slots moved to a primary that had none", func(l *Look) {
		l.Nodes["d"] = Node{ID: "d", Addr: "d:1", Seen: second(0), RunID: "run-d", Primary: true}
	}, func(l *Look) { l.give("d", 0, 9) },
		[]string{"0-2 slots moved to d:1 (10 slots) was a:1 0-9 graceful"}},
	{"slots moved, then a promotion of the new owner's replica", nil, func(l *Look) {
		l.give("b", 100, 199)
		l.promote("b2", 9, true)
	}, []string{
		"0-2 promotion of b2:1 (config epoch 2 -> 9) was b:1 100-199 5461-10921",
		"0-2 slots moved to b2:1 (100 slots) was a:1 100-199 graceful",
	}},
	{"a promotion while slots moved away", nil, func(l *Look) {
		l.give("b", 100, 199)
		l.promote("a2", 9, true)
	}, []string{
		"0-2 promotion of a2:1 (config epoch 1 -> 9) was a:1 0-5460",
		"0-2 slots moved to b:1 (100 slots) was a:1 100-199 graceful",
	}},
	{"a slot without an owner, and found again", func(l *Look) { l.give("", 5, 5) }, func(l *Look) { l.give("a", 5, 5) }, nil},

	{"late once", nil, func(l *Look) { l.miss("a", 1, second(0)) }, nil},
	{"late twice", func(l *Look) { l.miss("a", 1, second(-1)) }, func(l *Look) { l.miss("a", 2, second(-1)) },
		[]string{"-1-2 a:1 down 0-5460"}},
	{"still down", func(l *Look) { l.miss("a", 2, second(-1)) }, func(l *Look) { l.miss("a", 3, second(-1)) }, nil},
	{"replica down", nil, func(l *Look) { l.miss("a2", 2, second(0)) }, []string{"0-2 a2:1 down"}},
	{"up", func(l *Look) { l.miss("a", 2, second(-1)) }, func(l *Look) { l.miss("a", 0, second(1)) },
		[]string{"0-2 a:1 up"}},
	{"no longer late", func(l *Look) { l.miss("a", 1, second(-1)) }, func(l *Look) { l.miss("a", 0, second(1)) }, nil},
	{"up, and its replica had been promoted", func(l *Look) {
		l.promote("a2", 9, false)
		l.miss("a", 5, second(-4))
	}, func(l *Look) {
		l.edit("a", func(n *Node) { n.Missed, n.Primary, n.PrimaryID, n.Slots = 0, false, "a2", nil })
	}, []string{"0-2 a:1 up (had not heard that its slots are another's) 0-5460"}},
	{"never seen", func(l *Look) { l.Nodes["d"] = Node{ID: "d", Addr: "d:1", Missed: 1} },
		func(l *Look) { l.miss("d", 2, time.Time{}) }, nil},
	{"new", nil, func(l *Look) { l.Nodes["d"] = Node{ID: "d", Addr: "d:1", Seen: second(1), RunID: "run-d"} },
		[]string{"0-2 d:1 up (new)"}},
}

func TestChanges(t *testing.T) {
	for _, test := range later {
		t.Run(test.name, func(t *testing.T) {
			before := calm()
			if test.before != nil {
				test.before(before)
			}
			after := before.next()
			for id, n := range before.Nodes {
				if n.Missed > 0 {
					after.edit(id, func(a *Node) { a.Seen = n.Seen })
				}
			}
			if test.after != nil {
				test.after(after)
			}
			var got []string
			for _, e := range Changes(before, after) {
				got = append(got, show(e))
			}
			if g, w := strings.Join(got, "\n"), strings.Join(test.want, "\n"); g != w {
				t.Errorf("got\n%s\nwant\n%s", g, w)
			}
		})
	}
}
