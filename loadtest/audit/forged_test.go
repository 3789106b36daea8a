package audit_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/slotlimit/slotlimit/keys"
	"github.com/slotlimit/slotlimit/loadtest/audit"
)

// forgeries are histories in which one thing is changed, and the lines that must come of
// it: all of them, and no others. No line means that the change is harmless.
var forgeries = []struct {
	name   string
	change func(f *forgery)
	want   []string
}{
	// counters
	{"counted twice", func(f *forgery) { f.counter(0).Value = 104 },
		[]string{`counters: user "alice" window 29139840: stored 104, told 103`}},
	{"lost update", func(f *forgery) { f.counter(1).Value = 102 },
		[]string{`counters: user "alice" window 29139841: stored 102, told 103`}},
	{"lost reply, counted", func(f *forgery) { f.told(0).Ambiguous, f.counter(0).Value = 1, 104 }, nil},
	{"lost reply, not counted", func(f *forgery) { f.told(0).Ambiguous = 1 }, nil},
	{"lost reply, counted twice", func(f *forgery) { f.told(0).Ambiguous, f.counter(0).Value = 1, 105 },
		[]string{`counters: user "alice" window 29139840: stored 105, told 103 (+1 ambiguous)`}},
	{"lost reply and lost update", func(f *forgery) { f.told(0).Ambiguous, f.counter(0).Value = 1, 102 },
		[]string{`counters: user "alice" window 29139840: stored 102, told 103 (+1 ambiguous)`}},
	{"lost reply of a new key, counted", func(f *forgery) { f.addLost("bob", 1); f.addCounter("bob", 1) }, nil},
	{"lost reply of a new key, not counted", func(f *forgery) { f.addLost("bob", 1) }, nil},
	{"lost reply of a new key, counted twice", func(f *forgery) { f.addLost("bob", 1); f.addCounter("bob", 2) },
		[]string{`counters: user "bob" window 29139841: stored 2, told 0 (+1 ambiguous)`}},
	{"untold counter", func(f *forgery) { f.addCounter("bob", 7) },
		[]string{`counters: user "bob" window 29139841: stored 7, told 0`}},
	{"untold counter of another form", func(f *forgery) { f.addKey("lt:{bob}:x=y", 7) },
		[]string{`counters: key "lt:{bob}:x=y": stored 7, told 0`}},
	{"lost reply without a key, counted", func(f *forgery) { f.account.Keyless["alice"] = 1; f.counter(0).Value = 104 }, nil},
	{"lost reply without a key, counted in both windows", func(f *forgery) {
		f.account.Keyless["alice"] = 1
		f.counter(0).Value, f.counter(1).Value = 104, 104
	}, []string{`counters: user "alice" window 29139841: stored 104, told 103`}},
	{"counter gone", func(f *forgery) { f.drop(0) },
		[]string{`counters: user "alice" window 29139840: stored 0, told 103`}},
	{"not a counter", func(f *forgery) { f.counter(0).Unread = "WRONGTYPE" },
		[]string{`counters: user "alice" window 29139840: told 103, but the counter cannot be read: WRONGTYPE`}},
	{"request without an end", func(f *forgery) { f.sent = 12361 },
		[]string{`counters: 12361 requests were started, but 12360 ended`}},
	{"nothing acknowledged", func(f *forgery) {
		f.account.Told = nil
		for i := range f.final().Visits {
			f.final().Visits[i].Counters = nil
		}
	}, []string{`counters: no request was acknowledged, so nothing is proven`}},
	{"two users on one key", func(f *forgery) {
		f.account.Clashes = []audit.Clash{{Key: "lt:{a}:1", User: "a", OtherUser: "b"}}
		f.account.Clashed = 1
	}, []string{`counters: key "lt:{a}:1" counts for two users: "a" and "b"`}},

	// counters that are gone at the end
	{"read when its window had ended", func(f *forgery) { f.early(end(window), f.drop(0)); f.late() }, nil},
	{"expired unread", func(f *forgery) { f.drop(0); f.late() },
		[]string{`counters: user "alice" window 29139840: told 103, but the counter had expired before it could be read`}},
	{"read only while its window went on", func(f *forgery) { f.early(end(window)-1, f.drop(0)); f.late() },
		[]string{`counters: user "alice" window 29139840: told 103, but the counter had expired before it could be read`}},
	{"gone when it should have been there", func(f *forgery) { f.early(end(window)); f.drop(0); f.late() },
		[]string{`counters: user "alice" window 29139840: stored 0, told 103`}},

	// limit
	{"one too many allowed", func(f *forgery) { f.told(0).Allowed = 101 },
		[]string{`limit: user "alice" window 29139840: allowed 101, should be 100 (rate 100, told 103)`}},
	{"one too few allowed", func(f *forgery) { f.told(0).Allowed = 99 },
		[]string{`limit: user "alice" window 29139840: allowed 99, should be 100 (rate 100, told 103)`}},
	{"one denied below the rate", func(f *forgery) {
		f.told(0).Acknowledged, f.told(0).Allowed, f.counter(0).Value = 50, 49, 50
	}, []string{`limit: user "alice" window 29139840: allowed 49, should be 50 (rate 100, told 50)`}},
	{"lost replies that cannot have taken a place", func(f *forgery) {
		f.told(0).Acknowledged, f.told(0).Allowed, f.told(0).Ambiguous, f.counter(0).Value = 50, 49, 10, 60
	}, []string{`limit: user "alice" window 29139840: allowed 49, should be 50 (rate 100, told 50 (+10 ambiguous))`}},
	{"a lost reply took a place", func(f *forgery) {
		f.told(0).Ambiguous, f.told(0).Allowed, f.counter(0).Value = 1, 99, 104
	}, nil},
	{"a lost reply took two places", func(f *forgery) {
		f.told(0).Ambiguous, f.told(0).Allowed, f.counter(0).Value = 1, 98, 104
	}, []string{`limit: user "alice" window 29139840: allowed 98, should be 99 to 100 (rate 100, told 103 (+1 ambiguous))`}},
	{"a lost reply without a key took a place", func(f *forgery) {
		f.account.Keyless["alice"], f.told(0).Allowed, f.counter(0).Value = 1, 99, 104
	}, nil},
	{"over the rate in spite of lost replies", func(f *forgery) { f.told(0).Ambiguous, f.told(0).Allowed = 5, 101 },
		[]string{`limit: user "alice" window 29139840: allowed 101, should be 100 (rate 100, told 103 (+5 ambiguous))`}},
	{"one window in two keys", func(f *forgery) { f.split() },
		[]string{`limit: user "alice" window 29139840: allowed 200, should be 100 (rate 100, told 206)`}},

	// placement
	{"on another node, too", func(f *forgery) {
		key := f.told(0).Key
		f.put((f.home(key)+1)%3, audit.Counter{Key: key, Unread: "MOVED"})
	}, []string{`placement: user "alice" window 29139840: key is on b:1, but its slot is 749 and a:1 owns it`}},
	{"on another node while slots move", func(f *forgery) {
		key := f.told(0).Key
		f.put((f.home(key)+1)%3, audit.Counter{Key: key, Unread: "MOVED"})
		f.final().Steady = false
	}, nil},
	{"on another node in an earlier pass", func(f *forgery) { f.astray() },
		[]string{`placement: user "alice" window 29139840: key is on b:1, but its slot is 749 and a:1 owns it`}},
	{"on another node in an earlier pass, to which its slot then moved", func(f *forgery) {
		f.astray()
		f.move(slots(700, 800))
	}, nil},
	{"on another node in an earlier pass, and other slots then moved", func(f *forgery) {
		f.astray()
		f.move(slots(700, 740))
	}, []string{`placement: user "alice" window 29139840: key is on b:1, but its slot is 749 and a:1 owns it`}},
	{"on a former primary in an earlier pass", func(f *forgery) {
		f.astray()
		f.happen(happened(30, audit.Promotion, "a:1", "b:1", ofA))
	}, nil},
	{"on another node in an earlier pass, and another shard failed over", func(f *forgery) {
		f.astray()
		f.happen(happened(30, audit.Promotion, "c:1", "c:2", slots(10923, 16383)))
	}, []string{`placement: user "alice" window 29139840: key is on b:1, but its slot is 749 and a:1 owns it`}},
	{"on two primaries in the final pass, under events", func(f *forgery) {
		f.put(1, audit.Counter{Key: f.told(0).Key, Unread: "MOVED"})
		f.happen(happened(30, audit.SlotsMoved, "a:1", "b:1", ofA))
	}, []string{`placement: user "alice" window 29139840: key is on b:1, but its slot is 749 and a:1 owns it`}},
	{"on its owner and where its slot is moving in the final pass", func(f *forgery) {
		c := *f.counter(0)
		c.Arriving = true
		f.put(1, c)
	}, []string{`placement: user "alice" window 29139840: key is on a:1 and on b:1`}},
	{"on its owner and where its slot is moving, while slots move", func(f *forgery) {
		c := *f.counter(0)
		c.Arriving = true
		f.counter(0).Value-- // read before it went
		f.put(1, c)
		f.final().Steady = false
	}, nil},
	{"on its owner and where its slot is moving, and read there first", func(f *forgery) {
		c := *f.counter(0)
		c.Arriving = true
		c.Value--
		f.put(1, c)
		f.final().Steady = false
	}, nil},
	{"missed by a pass while slots moved", func(f *forgery) {
		f.early(end(window))
		f.passes[0].Steady = false
		f.drop(0)
		f.late()
	}, []string{`counters: user "alice" window 29139840: told 103, but the counter had expired before it could be read`}},
	{"no hash tag", func(f *forgery) { f.untag(0, "lt:alice:29139840") },
		[]string{`placement: user "alice" window 29139840: key "lt:alice:29139840" is in slot 13312, but the user's slot is 749`}},
	{"the node computes another slot", func(f *forgery) {
		key := f.told(0).Key
		f.final().Visits[0].Slots[key] = 5
	}, []string{`placement: user "alice" window 29139840: slot 749 as computed here, 5 as the node says`}},
	{"nobody owns the slot", func(f *forgery) { f.unserve() }, []string{
		`counters: user "alice" window 29139840: told 103, but the counter cannot be read: no node owns slot 749`,
		`counters: user "alice" window 29139841: told 103, but the counter cannot be read: no node owns slot 749`,
		`placement: user "alice" window 29139840: key is on a:1, but its slot is 749 and no node owns it`,
		`placement: user "alice" window 29139841: key is on a:1, but its slot is 749 and no node owns it`,
	}},

	// expiry
	{"no TTL", func(f *forgery) { f.counter(0).Expires = 0 },
		[]string{`expiry: user "alice" window 29139840: no TTL, should expire 10m0s after its window's end at the latest`}},
	{"TTL too long", func(f *forgery) { f.counter(0).Expires++ },
		[]string{`expiry: user "alice" window 29139840: TTL 8m59.001s, should be at most 8m59s: expires 10m0.001s after the window's end`}},
	{"TTL too short", func(f *forgery) { f.counter(1).Expires = end(window+1) - 1 },
		[]string{`expiry: user "alice" window 29139841: TTL -1.001s, should be at least -1s: expires 1ms before the window's end`}},
	{"TTL at the window's end", func(f *forgery) { f.counter(0).Expires = end(window) }, nil},
}

func TestForgedHistories(t *testing.T) {
	for _, test := range forgeries {
		t.Run(test.name, func(t *testing.T) {
			f := forge(60, 103)
			test.change(f)
			got := failed(f.verdict())
			if g, w := strings.Join(got, "\n"), strings.Join(test.want, "\n"); g != w {
				t.Errorf("got\n%s\nwant\n%s", g, w)
			}
		})
	}
}

// addLost adds a key of which callers only heard that replies were lost.
func (f *forgery) addLost(user string, ambiguous int64) {
	f.account.Told = append(f.account.Told, audit.Told{Key: f.key(user), User: user, Ambiguous: ambiguous})
}

// addCounter adds a counter of the user's second window.
func (f *forgery) addCounter(user string, value int64) { f.addKey(f.key(user), value) }

func (f *forgery) addKey(key string, value int64) {
	f.put(f.home(key), audit.Counter{Key: key, Value: value, Expires: end(window + 1)})
}

func (f *forgery) key(user string) string {
	key, err := f.promise.Layout.Window(user, "", period, window+1)
	if err != nil {
		panic(err)
	}
	return key
}

// split makes a second counter for alice's first window, under another limit's name.
func (f *forgery) split() {
	t, c := *f.told(0), *f.counter(0)
	t.Key = "lt:{alice}:second:29139840"
	c.Key = t.Key
	f.account.Told = append(f.account.Told, t)
	f.put(f.home(c.Key), c)
}

// untag renames the key of alice's counter on both sides.
func (f *forgery) untag(w int64, key string) {
	c := f.drop(w)
	f.told(w).Key, c.Key = key, key
	f.put(f.home(key), c)
}

// unserve takes alice's slot from its owner, which has her counters still.
func (f *forgery) unserve() {
	slot := keys.Slot(f.told(0).Key)
	s := &f.final().Shards[f.home(f.told(0).Key)]
	s.Slots = []audit.SlotRange{{First: s.Slots[0].First, Last: slot - 1}, {First: slot + 1, Last: s.Slots[0].Last}}
}

// astray adds an early pass that finds the key of alice's first window on b:1, and nothing else wrong.
func (f *forgery) astray() {
	key := f.told(0).Key
	f.early(end(window), *f.counter(0))
	f.passes[0].Visits[1].Counters = []audit.Counter{{Key: key, Unread: "MOVED"}}
}

// move makes b:1 the owner of slots of a:1 in the final pass, with all keys there.
func (f *forgery) move(r audit.SlotRange) {
	p := f.final()
	p.Shards = slices.Clone(p.Shards)
	p.Shards[0].Slots = []audit.SlotRange{{First: 0, Last: r.First - 1}, {First: r.Last + 1, Last: 5460}}
	p.Shards[1].Slots = append([]audit.SlotRange{r}, p.Shards[1].Slots...)
	a, b := &p.Visits[0], &p.Visits[1]
	kept := []audit.Counter{}
	for _, c := range a.Counters {
		if slot := keys.Slot(c.Key); r.First <= slot && slot <= r.Last {
			b.Counters = append(b.Counters, c)
		} else {
			kept = append(kept, c)
		}
	}
	a.Counters = kept
}
