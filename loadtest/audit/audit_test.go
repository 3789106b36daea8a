package audit_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slotlimit/slotlimit/keys"
	"github.com/slotlimit/slotlimit/loadtest/audit"
)

const (
	rate   = 100
	period = time.Minute
	grace  = 10 * time.Minute
	window = 29139840 // in which the forged runs begin
)

// A forgery is a history that is honest until a test changes it.
type forgery struct {
	promise audit.Promise
	sent    int64
	account audit.Account
	passes  []audit.Pass // the last one is final
	events  []audit.Event
	durable bool
}

// forge makes the history of users who made so many requests in each of two windows.
func forge(users int, requests int64) *forgery {
	layout, err := keys.New("lt")
	if err != nil {
		panic(err)
	}
	f := &forgery{
		promise: audit.Promise{Layout: layout, Rate: rate, Period: period, Grace: grace},
		account: audit.Account{Keyless: map[string]int64{}},
	}
	now := end(window+1) + 1000
	last := audit.Pass{Steady: true, Shards: []audit.Shard{
		{Node: "a:1", Slots: []audit.SlotRange{{First: 0, Last: 5460}}},
		{Node: "b:1", Slots: []audit.SlotRange{{First: 5461, Last: 10922}}},
		{Node: "c:1", Slots: []audit.SlotRange{{First: 10923, Last: 16383}}},
	}}
	for _, s := range last.Shards {
		last.Visits = append(last.Visits, audit.Visit{Node: s.Node, From: now, To: now + 10, Slots: map[string]int{}})
	}
	f.passes = []audit.Pass{last}
	for u := range users {
		for w := range int64(2) {
			user := name(u)
			key, err := layout.Window(user, "", period, window+w)
			if err != nil {
				panic(err)
			}
			f.account.Told = append(f.account.Told, audit.Told{
				Key: key, User: user, Window: window + w, Known: true, First: at(window+w, 0),
				Acknowledged: requests, Allowed: min(rate, requests),
			})
			f.put(f.home(key), audit.Counter{Key: key, Value: requests, Expires: end(window+w) + grace.Milliseconds()})
		}
	}
	return f
}

// name is "alice" for the first user, and random for the others, as the spread
// check expects of names.
func name(u int) string {
	if u == 0 {
		return "alice"
	}
	return fmt.Sprintf("u-%x", uint64(u)*0x9e3779b97f4a7c15)
}

func end(window int64) int64 { return (window + 1) * period.Milliseconds() }

// at is so many seconds after the begin of a window.
func at(window int64, seconds int) time.Time {
	return time.UnixMilli(end(window - 1)).Add(time.Duration(seconds) * time.Second)
}

func (f *forgery) final() *audit.Pass { return &f.passes[len(f.passes)-1] }

// home is the index of the primary that owns the key's slot.
func (f *forgery) home(key string) int {
	return slices.IndexFunc(f.final().Shards, func(s audit.Shard) bool { return s.Slots[0].Last >= keys.Slot(key) })
}

func (f *forgery) put(node int, c audit.Counter) {
	v := &f.final().Visits[node]
	v.Counters = append(v.Counters, c)
}

// told returns alice's entry for the window after the first by so many.
func (f *forgery) told(w int64) *audit.Told {
	i := slices.IndexFunc(f.account.Told, func(t audit.Told) bool { return t.User == "alice" && t.Window == window+w })
	return &f.account.Told[i]
}

// counter returns alice's counter in the final pass.
func (f *forgery) counter(w int64) *audit.Counter {
	key := f.told(w).Key
	v := &f.final().Visits[f.home(key)]
	return &v.Counters[slices.IndexFunc(v.Counters, func(c audit.Counter) bool { return c.Key == key })]
}

// drop removes alice's counter from the final pass.
func (f *forgery) drop(w int64) audit.Counter {
	c := *f.counter(w)
	v := &f.final().Visits[f.home(c.Key)]
	v.Counters = slices.DeleteFunc(v.Counters, func(o audit.Counter) bool { return o.Key == c.Key })
	return c
}

// early adds a pass before the others that finds only these counters of alice, at a time
// by all nodes' clocks.
func (f *forgery) early(at int64, found ...audit.Counter) {
	p := *f.final()
	p.Visits = slices.Clone(p.Visits)
	for i := range p.Visits {
		p.Visits[i] = audit.Visit{Node: p.Visits[i].Node, From: at, To: at + 10}
		if i == f.home(f.told(0).Key) {
			p.Visits[i].Counters = found
		}
	}
	f.passes = append([]audit.Pass{p}, f.passes...)
}

// late makes the final pass so late that alice's first window has expired.
func (f *forgery) late() {
	for i := range f.final().Visits {
		v := &f.final().Visits[i]
		v.From, v.To = end(window)+grace.Milliseconds(), end(window)+grace.Milliseconds()+10
	}
}

func (f *forgery) verdict() audit.Verdict {
	f.account.Tally = audit.Tally{Unavailable: f.account.Tally.Unavailable}
	for _, t := range f.account.Told {
		f.account.Tally.Acknowledged += t.Acknowledged
		f.account.Tally.Allowed += t.Allowed
		f.account.Tally.Ambiguous += t.Ambiguous
	}
	for _, n := range f.account.Keyless {
		f.account.Tally.Ambiguous += n
	}
	if f.sent == 0 {
		f.sent = f.account.Tally.Ended()
	}
	var book audit.Book
	for i, p := range f.passes {
		book.Add(p, i == len(f.passes)-1)
	}
	return audit.Reconcile(audit.History{
		Promise: f.promise, Sent: f.sent, Account: f.account, Book: &book, Events: f.events, Durable: f.durable,
	})
}

// failed returns the lines of all checks that do not hold, each with its check's name.
func failed(v audit.Verdict) []string {
	var lines []string
	for _, c := range v.Checks {
		if c.OK != (len(c.Offenders) == 0) {
			lines = append(lines, fmt.Sprintf("%s: ok is %v with %d offenders", c.Name, c.OK, len(c.Offenders)))
		}
		for _, o := range c.Offenders {
			lines = append(lines, c.Name+": "+o)
		}
	}
	return lines
}

func TestHonestHistoryHolds(t *testing.T) {
	v := forge(60, 103).verdict()
	if lines := failed(v); !v.OK() || lines != nil {
		t.Fatalf("an honest history fails:\n%s", strings.Join(lines, "\n"))
	}
	want := audit.Totals{Requests: 12360, Acknowledged: 12360, Allowed: 12000, Denied: 360, Stored: 12360}
	if v.Totals != want {
		t.Errorf("totals %+v, want %+v", v.Totals, want)
	}
	var names []string
	for _, c := range v.Checks {
		names = append(names, c.Name)
	}
	if want := []string{"counters", "limit", "placement", "spread", "expiry"}; !slices.Equal(names, want) {
		t.Errorf("checks %v, want %v", names, want)
	}
	var sum audit.Node
	for _, n := range v.Nodes {
		sum.Slots, sum.Users, sum.Keys = sum.Slots+n.Slots, sum.Users+n.Users, sum.Keys+n.Keys
		sum.Requests, sum.Share = sum.Requests+n.Requests, sum.Share+n.Share
	}
	if sum.Slots != keys.Slots || sum.Users != 60 || sum.Keys != 120 || sum.Requests != 12360 || sum.Share < 0.999 || sum.Share > 1.001 {
		t.Errorf("the nodes add up to %+v", sum)
	}
}

func TestOffendersAreCapped(t *testing.T) {
	f := forge(30, 50)
	for i := range f.final().Visits {
		for j := range f.final().Visits[i].Counters {
			f.final().Visits[i].Counters[j].Value++
		}
	}
	c := f.verdict().Checks[0]
	if c.OK || len(c.Offenders) != 10 || c.More != 50 {
		t.Errorf("60 offenders: ok %v, %d listed, %d more; want 10 and 50", c.OK, len(c.Offenders), c.More)
	}
}
