package audit

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/slotlimit/slotlimit/keys"
)

// A reconciliation holds both sides, joined by Redis key.
type reconciliation struct {
	History
	rows []row          // ordered by user, window and key
	at   map[string]int // index in rows, by key

	events []Event // those of the history, in order of their times
	losses []Loss  // explained ones, filled in by the check of the counters
}

// A row is one Redis key: what was told of it, and what was found.
type row struct {
	Told
	untold bool // found on a node, and nobody was told of it

	// Known tells here that the window is known at all.

	state  state
	why    string // of unread
	stored int64
	found  *reading  // nil if no node holds it, or held it when it was last visited
	when   time.Time // at which stored held, by the load test's clock
	slot   int
	shard  int // that owns the slot, -1 if none does
}

// state says what is known of a row's counter.
type state int

const (
	absent  state = iota // visited in time, and not there: stored is 0
	read                 // stored is its value
	expired              // gone before anyone looked, or looked at too early
	unread               // there, but its value could not be read
)

func newReconciliation(h History) *reconciliation {
	n := max(len(h.Account.Told), len(h.Book.readings))
	r := &reconciliation{History: h, rows: make([]row, 0, n), at: make(map[string]int, n)}
	r.events = slices.SortedStableFunc(slices.Values(h.Events), func(a, b Event) int {
		return cmp.Or(a.To.Compare(b.To), a.From.Compare(b.From))
	})
	for i, t := range h.Account.Told {
		r.at[t.Key] = i
		r.rows = append(r.rows, r.join(t))
	}
	for key := range h.Book.readings {
		if _, told := r.at[key]; !told {
			r.rows = append(r.rows, r.join(Told{Key: key}))
			r.rows[len(r.rows)-1].untold = true
		}
	}
	slices.SortFunc(r.rows, func(a, b row) int {
		return cmp.Or(cmp.Compare(a.User, b.User), cmp.Compare(a.Window, b.Window), cmp.Compare(a.Key, b.Key))
	})
	for i, w := range r.rows {
		r.at[w.Key] = i
	}
	return r
}

// row returns the row of a key, or one made from its name.
func (r *reconciliation) row(key string) row {
	if i, ok := r.at[key]; ok {
		return r.rows[i]
	}
	return r.join(Told{Key: key})
}

// join finds the counter of a key, and what its name tells if no caller did.
func (r *reconciliation) join(t Told) row {
	if !t.Known {
		if k, err := r.Promise.Layout.Parse(t.Key); err == nil && k.Algorithm == "" {
			t.Window, t.Known = k.Window, true
			if t.User == "" {
				t.User = k.User
			}
		}
	}
	slot := keys.Slot(t.Key)
	w := row{Told: t, slot: slot, shard: owner(r.Book.shards, slot)}
	if found, ok := r.Book.readings[t.Key]; ok {
		w.found = &found
	}
	w.state, w.when = r.stateOf(w)
	switch w.state {
	case read:
		w.stored = w.found.Value
	case unread:
		w.why = fmt.Sprintf("no node owns slot %d", slot)
		if w.found != nil {
			w.why = w.found.Unread
		}
	}
	return w
}

func (r *reconciliation) stateOf(w row) (state, time.Time) {
	end := r.Promise.windowEnd(w.Window)
	if f := w.found; f != nil && (f.final || w.Known && f.at >= end) {
		if f.Unread != "" {
			return unread, f.when
		}
		return read, f.when
	}
	if w.shard < 0 {
		return unread, time.Time{}
	}
	if w.Known {
		if at, ok := r.Book.visited(w.slot, end, r.Promise.Grace.Milliseconds()); ok {
			return absent, at
		}
	}
	return expired, time.Time{}
}

// known says whether stored is known.
func (w row) known() bool { return w.state == read || w.state == absent }

// lost returns how many acknowledged counts are surely gone.
func (w row) lost() int64 {
	if !w.known() {
		return 0
	}
	return max(0, w.Acknowledged-w.stored)
}

// String names the row in an offender's line.
func (w row) String() string {
	if !w.Known || w.User == "" {
		return fmt.Sprintf("key %q", w.Key)
	}
	return fmt.Sprintf("user %q window %d", w.User, w.Window)
}

func (r *reconciliation) totals() Totals {
	t := r.Account.Tally
	sum := Totals{
		Requests:     r.Sent,
		Acknowledged: t.Acknowledged,
		Allowed:      t.Allowed,
		Denied:       t.Acknowledged - t.Allowed,
		Ambiguous:    t.Ambiguous,
		Unavailable:  t.Unavailable,
	}
	for _, w := range r.rows {
		sum.Stored += w.stored
		sum.Lost += w.lost()
	}
	return sum
}

// nodes returns the table per primary. Who is asked for what goes by the owner of the key's slot.
func (r *reconciliation) nodes() []Node {
	nodes := make([]Node, len(r.Book.shards))
	at := make(map[string]int, len(nodes))
	for i, s := range r.Book.shards {
		nodes[i] = Node{Addr: s.Node, Slots: s.SlotCount()}
		at[s.Node] = i
	}
	counted := ""
	for i, w := range r.rows {
		if w.found != nil {
			if n, ok := at[w.found.node]; ok {
				nodes[n].Keys++
			}
		}
		if w.shard < 0 || w.Acknowledged == 0 {
			continue
		}
		n := &nodes[w.shard]
		if i == 0 || w.User != counted {
			n.Users++
			counted = w.User
		}
		n.Requests += w.Acknowledged
		n.Allowed += w.Allowed
		n.Denied += w.Denied()
	}
	for i := range nodes {
		if total := r.Account.Tally.Acknowledged; total > 0 {
			nodes[i].Share = float64(nodes[i].Requests) / float64(total)
		}
	}
	for _, s := range r.Book.strays {
		if n, ok := at[s.node]; ok && !r.moved(s) {
			nodes[n].Keys++
		}
	}
	return nodes
}
