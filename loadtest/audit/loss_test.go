package audit_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/slotlimit/slotlimit/keys"
	"github.com/slotlimit/slotlimit/loadtest/audit"
)

// Alice's slot is 749, on a:1. Her first window begins at second 0, and the counters are read at second 121.

// happened is an event in the second that begins so many seconds after alice's first window.
func happened(second int, kind audit.EventKind, node, was string, slots ...audit.SlotRange) audit.Event {
	return audit.Event{
		From: at(window, second), To: at(window, second+1),
		Kind: kind, Node: node, Was: was, Slots: slots,
	}
}

func (f *forgery) happen(events ...audit.Event) { f.events = append(f.events, events...) }

func slots(first, last int) audit.SlotRange { return audit.SlotRange{First: first, Last: last} }

var ofA = slots(0, 5460)

// lose takes counts of alice's second window, which is read 1 s after its end.
func (f *forgery) lose(n int64) { f.counter(1).Value -= n }

const unexplained = `counters: user "alice" window 29139841: stored 98, told 103, and nothing that happened to its shard in that time explains it`

// losing are histories with a loss, the lines that must come of it, and the losses that are explained.
var losing = []struct {
	name   string
	change func(f *forgery)
	want   []string
	losses []string
}{
	{"no event", func(f *forgery) { f.lose(5) },
		[]string{`counters: user "alice" window 29139841: stored 98, told 103`}, nil},
	{"promotion", func(f *forgery) {
		f.lose(5)
		f.happen(happened(70, audit.Promotion, "a:1", "a:2", ofA))
	}, nil, []string{"lost 5 on a:2 (counters: 1) by promotion of a:1"}},
	{"restart", func(f *forgery) {
		f.lose(5)
		f.happen(happened(70, audit.Restart, "a:1", "", ofA))
	}, nil, []string{"lost 5 on a:1 (counters: 1) by restart of a:1"}},
	{"restart that emptied the shard", func(f *forgery) {
		f.empty(0)
		f.happen(happened(119, audit.Restart, "a:1", "", ofA))
	}, nil, []string{"lost 3502 on a:1 (counters: 34) by restart of a:1"}},
	{"emptied shard without an event", func(f *forgery) { f.drop(0); f.drop(1) }, []string{
		`counters: user "alice" window 29139840: stored 0, told 103`,
		`counters: user "alice" window 29139841: stored 0, told 103`,
	}, nil},
	{"promotion of another shard", func(f *forgery) {
		f.lose(5)
		f.happen(happened(70, audit.Promotion, "b:1", "b:2", slots(5461, 10922)))
	}, []string{unexplained}, nil},
	{"restart of a replica", func(f *forgery) {
		f.lose(5)
		f.happen(happened(70, audit.Restart, "a:2", ""))
	}, []string{unexplained}, nil},
	{"graceful failover only", func(f *forgery) {
		f.lose(5)
		f.happen(happened(70, audit.Promotion, "a:1", "a:2", ofA))
		f.events[0].Graceful = true
	}, []string{unexplained}, nil},
	{"slots moved only", func(f *forgery) {
		f.lose(5)
		f.happen(happened(70, audit.SlotsMoved, "a:1", "b:1", ofA))
	}, []string{unexplained}, nil},
	{"node down and up only", func(f *forgery) {
		f.lose(5)
		f.happen(happened(70, audit.NodeDown, "a:1", "", ofA), happened(75, audit.NodeUp, "a:1", ""))
	}, []string{unexplained}, nil},
	{"return of a primary that had not heard", func(f *forgery) {
		f.lose(5)
		f.happen(happened(70, audit.NodeUp, "a:2", "", ofA))
	}, nil, []string{"lost 5 on a:2 (counters: 1) by a:2 up"}},
	{"event before the first acknowledgement", func(f *forgery) {
		f.lose(5)
		f.happen(happened(58, audit.Promotion, "a:1", "a:2", ofA))
	}, []string{unexplained}, nil},
	{"event over the first acknowledgement", func(f *forgery) {
		f.lose(5)
		f.happen(happened(59, audit.Promotion, "a:1", "a:2", ofA))
	}, nil, []string{"lost 5 on a:2 (counters: 1) by promotion of a:1"}},
	{"first acknowledgement not known", func(f *forgery) {
		f.lose(5)
		f.told(1).First = time.Time{}
		f.happen(happened(70, audit.Promotion, "a:1", "a:2", ofA))
	}, []string{unexplained}, nil},
	{"event after the reading", func(f *forgery) {
		f.lose(5)
		f.happen(happened(122, audit.Promotion, "a:1", "a:2", ofA))
	}, []string{unexplained}, nil},
	{"event after the reading, by the load test's clock", func(f *forgery) {
		f.lose(5)
		f.final().To = at(window, 111) // the node's clock is ten seconds ahead
		f.happen(happened(112, audit.Promotion, "a:1", "a:2", ofA))
	}, []string{unexplained}, nil},
	{"event before the reading, by the load test's clock", func(f *forgery) {
		f.lose(5)
		f.final().To = at(window, 131)
		f.happen(happened(130, audit.Promotion, "a:1", "a:2", ofA))
	}, nil, []string{"lost 5 on a:2 (counters: 1) by promotion of a:1"}},
	{"event after an early reading", func(f *forgery) {
		c := f.drop(0)
		c.Value = 98
		f.early(end(window), c)
		f.late()
		f.happen(happened(70, audit.Promotion, "a:1", "a:2", ofA))
	}, []string{strings.Replace(unexplained, "29139841", "29139840", 1)}, nil},
	{"event after a pass that missed the counter", func(f *forgery) {
		f.drop(0)
		f.early(end(window))
		f.late()
		f.happen(happened(70, audit.Promotion, "a:1", "a:2", ofA))
	}, []string{strings.NewReplacer("29139841", "29139840", "98", "0").Replace(unexplained)}, nil},
	{"one of two events", func(f *forgery) {
		f.lose(5)
		f.happen(happened(90, audit.Restart, "a:1", "", ofA), happened(70, audit.Promotion, "a:1", "a:2", ofA))
	}, nil, []string{"lost 5 on a:2 (counters: 1) by promotion of a:1 or restart of a:1"}},
	{"two events for one, one for the other", func(f *forgery) {
		f.counter(0).Value--
		f.lose(5)
		f.happen(happened(30, audit.Promotion, "a:1", "a:2", ofA), happened(90, audit.Restart, "a:1", "", ofA))
	}, nil, []string{
		"lost 1 on a:2 (counters: 1) by promotion of a:1 or restart of a:1",
		"lost 5 on a:1 (counters: 1) by restart of a:1",
	}},
	{"durable mode, loss with an event", func(f *forgery) {
		f.lose(5)
		f.durable = true
		f.happen(happened(70, audit.Promotion, "a:1", "a:2", ofA))
	}, []string{`counters: user "alice" window 29139841: stored 98, told 103, after promotion of a:1: durable mode promised that what is acknowledged outlives that`},
		[]string{"lost 5 on a:2 (counters: 1) by promotion of a:1"}},
	{"durable mode, event without a loss", func(f *forgery) {
		f.durable = true
		f.happen(happened(70, audit.Promotion, "a:1", "a:2", ofA))
	}, nil, nil},
	{"over-count under events", func(f *forgery) {
		f.counter(1).Value = 104
		f.happen(happened(70, audit.Promotion, "a:1", "a:2", ofA), happened(90, audit.Restart, "a:1", "", ofA))
	}, []string{`counters: user "alice" window 29139841: stored 104, told 103`}, nil},
	{"untold counter under events", func(f *forgery) {
		f.addCounter("bob", 1)
		f.happen(happened(70, audit.Promotion, "a:1", "a:2", slots(0, keys.Slots-1)))
	}, []string{`counters: user "bob" window 29139841: stored 1, told 0`}, nil},
	{"more than ambiguous under events", func(f *forgery) {
		f.told(1).Ambiguous, f.counter(1).Value = 2, 106
		f.happen(happened(70, audit.Promotion, "a:1", "a:2", ofA))
	}, []string{`counters: user "alice" window 29139841: stored 106, told 103 (+2 ambiguous)`}, nil},
	{"loss besides ambiguity", func(f *forgery) {
		f.told(1).Ambiguous = 2
		f.lose(5)
		f.happen(happened(70, audit.Promotion, "a:1", "a:2", ofA))
	}, nil, []string{"lost 5 on a:2 (counters: 1) by promotion of a:1"}},
	{"expired unread under events", func(f *forgery) {
		f.drop(0)
		f.late()
		f.happen(happened(30, audit.Promotion, "a:1", "a:2", ofA))
	}, []string{`counters: user "alice" window 29139840: told 103, but the counter had expired before it could be read`}, nil},

	// slots that changed hands, and events without slots: who held them is worked out
	{"moved, then the new owner's replica was promoted", func(f *forgery) {
		f.lose(5)
		f.happen(happened(70, audit.SlotsMoved, "a:2", "b:1", slots(700, 800)), happened(80, audit.Promotion, "a:1", "a:2"))
	}, nil, []string{"lost 5 on a:2 (counters: 1) by promotion of a:1"}},
	{"moved, then the former owner restarted", func(f *forgery) {
		f.lose(5)
		f.happen(happened(70, audit.SlotsMoved, "a:1", "b:1", slots(700, 800)), happened(80, audit.Restart, "b:1", ""))
	}, []string{unexplained}, nil},
	{"the former owner restarted, then moved", func(f *forgery) {
		f.lose(5)
		f.happen(happened(70, audit.Restart, "b:1", ""), happened(80, audit.SlotsMoved, "a:1", "b:1", slots(700, 800)))
	}, nil, []string{"lost 5 on b:1 (counters: 1) by restart of b:1"}},
	{"the former owner restarted, then other slots moved", func(f *forgery) {
		f.lose(5)
		f.happen(happened(70, audit.Restart, "b:1", ""), happened(80, audit.SlotsMoved, "a:1", "b:1", slots(800, 900)))
	}, []string{unexplained}, nil},
	{"the former primary restarted before its replica was promoted", func(f *forgery) {
		f.lose(5)
		f.happen(happened(70, audit.Restart, "a:2", ""), happened(80, audit.Promotion, "a:1", "a:2"))
		f.events[1].Graceful = true
	}, nil, []string{"lost 5 on a:2 (counters: 1) by restart of a:2"}},
	{"the former primary restarted after its replica was promoted", func(f *forgery) {
		f.lose(5)
		f.happen(happened(70, audit.Promotion, "a:1", "a:2"), happened(80, audit.Restart, "a:2", ""))
		f.events[0].Graceful = true
	}, []string{unexplained}, nil},

	// limit
	{"as many more allowed as were lost", func(f *forgery) {
		f.lose(3)
		f.told(1).Allowed = 103
		f.happen(happened(70, audit.Promotion, "a:1", "a:2", ofA))
	}, nil, []string{"lost 3 on a:2 (counters: 1) by promotion of a:1"}},
	{"more allowed than were lost", func(f *forgery) {
		f.lose(1)
		f.told(1).Allowed = 102
		f.happen(happened(70, audit.Promotion, "a:1", "a:2", ofA))
	}, []string{`limit: user "alice" window 29139841: allowed 102, should be at most 101 (rate 100, told 103, lost at most 1)`},
		[]string{"lost 1 on a:2 (counters: 1) by promotion of a:1"}},
	{"more allowed, and nothing can have been lost", func(f *forgery) {
		f.told(1).Allowed = 101
		f.happen(happened(70, audit.Promotion, "a:1", "a:2", ofA))
	}, []string{`limit: user "alice" window 29139841: allowed 101, should be 100 (rate 100, told 103)`}, nil},
	{"more allowed, lost without an explanation", func(f *forgery) {
		f.lose(5)
		f.told(1).Allowed = 103
		f.happen(happened(70, audit.Promotion, "b:1", "b:2", slots(5461, 10922)))
	}, []string{unexplained, `limit: user "alice" window 29139841: allowed 103, should be 100 (rate 100, told 103)`}, nil},
	{"more allowed, what was ambiguous was counted and then lost", func(f *forgery) {
		f.told(1).Ambiguous, f.told(1).Allowed = 2, 102
		f.happen(happened(70, audit.Promotion, "a:1", "a:2", ofA))
	}, nil, nil},
	{"fewer allowed in spite of a loss", func(f *forgery) {
		f.lose(5)
		f.told(1).Allowed = 99
		f.happen(happened(70, audit.Promotion, "a:1", "a:2", ofA))
	}, []string{`limit: user "alice" window 29139841: allowed 99, should be 100 (rate 100, told 103)`},
		[]string{"lost 5 on a:2 (counters: 1) by promotion of a:1"}},
}

func TestLosses(t *testing.T) {
	for _, test := range losing {
		t.Run(test.name, func(t *testing.T) {
			f := forge(60, 103)
			test.change(f)
			v := f.verdict()
			if g, w := strings.Join(failed(v), "\n"), strings.Join(test.want, "\n"); g != w {
				t.Errorf("got\n%s\nwant\n%s", g, w)
			}
			var got []string
			for _, l := range v.Losses {
				got = append(got, l.String())
				if !strings.Contains(v.Checks[0].Detail, l.String()) {
					t.Errorf("%q does not tell of %q", v.Checks[0].Detail, l)
				}
			}
			if g, w := strings.Join(got, "\n"), strings.Join(test.losses, "\n"); g != w {
				t.Errorf("losses\n%s\nwant\n%s", g, w)
			}
		})
	}
}

// empty removes all counters of a primary.
func (f *forgery) empty(node int) { f.final().Visits[node].Counters = nil }

func TestLostIsAdded(t *testing.T) {
	f := forge(60, 103)
	f.lose(5)
	f.drop(0)
	f.happen(happened(70, audit.Promotion, "a:1", "a:2", ofA))
	if v := f.verdict(); v.Totals.Lost != 108 || v.Totals.Stored != v.Totals.Acknowledged-108 {
		t.Errorf("totals %+v, want 108 lost", v.Totals)
	}
}

func TestAmbiguitiesByShardAndCause(t *testing.T) {
	f := forge(60, 103)
	f.told(0).Ambiguous, f.told(0).Causes = 5, audit.Causes{audit.CauseTimeout: 3, audit.CauseEOF: 1}
	f.account.Keyless["alice"] = 3
	f.account.KeylessCauses = map[string]audit.Causes{"alice": {audit.CauseTimeout: 1}}
	f.account.Told = append(f.account.Told, audit.Told{
		Key: "lt:{bob}:29139841", User: "bob", Ambiguous: 1, Causes: audit.Causes{audit.CauseReset: 1},
	})
	bob := f.final().Shards[f.home("lt:{bob}:29139841")].Node
	want := []audit.Ambiguity{
		{Shard: "a:1", Cause: audit.CauseEOF, Calls: 1},
		{Shard: "a:1", Cause: audit.CauseOther, Calls: 3},
		{Shard: "a:1", Cause: audit.CauseTimeout, Calls: 4},
		{Shard: bob, Cause: audit.CauseReset, Calls: 1},
	}
	v := f.verdict()
	if bob == "a:1" || !reflect.DeepEqual(v.Ambiguities, want) || !v.OK() {
		t.Errorf("got %+v\nwant %+v; %v", v.Ambiguities, want, failed(v))
	}
	if v.Totals.Ambiguous != 9 {
		t.Errorf("%d ambiguous", v.Totals.Ambiguous)
	}
}

func ExampleLoss_String() {
	fmt.Println(audit.Loss{
		Shard: "127.0.0.1:7001", Counters: 3, Lost: 12, Events: []audit.Event{
			{Kind: audit.Promotion, Node: "127.0.0.1:7004", Was: "127.0.0.1:7001", Detail: "config epoch 1 -> 7"},
		},
	})
	// Output: lost 12 on 127.0.0.1:7001 (counters: 3) by promotion of 127.0.0.1:7004 (config epoch 1 -> 7)
}
