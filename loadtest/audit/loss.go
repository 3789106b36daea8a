package audit

import (
	"fmt"
	"slices"
	"strings"
)

// A Loss is what one event, or one of several, took from the counters of a shard.
type Loss struct {
	Shard    string  `json:"shard"`  // the primary that held the slots before the first of the events
	Events   []Event `json:"events"` // any of them may have taken it, in order of their times
	Counters int64   `json:"counters"`
	Lost     int64   `json:"lost"` // acknowledged counts, at least
}

// String tells it in half a sentence.
func (l Loss) String() string {
	return fmt.Sprintf("lost %d on %s (counters: %d) by %s", l.Lost, l.Shard, l.Counters, l.by())
}

func (l Loss) by() string {
	var parts []string
	for _, e := range l.Events {
		parts = append(parts, e.String())
	}
	return strings.Join(parts, " or ")
}

// String names what happened and to whom.
func (e Event) String() string {
	text := string(e.Kind) + " of " + e.Node
	if e.Kind == SlotsMoved {
		text = string(e.Kind) + " to " + e.Node
	}
	if e.Kind == NodeDown || e.Kind == NodeUp {
		text = strings.Replace(string(e.Kind), "node", e.Node, 1)
	}
	if e.Detail != "" {
		text += " (" + e.Detail + ")"
	}
	return text
}

// canLose says whether the event can take acknowledged counts: the promotion of a replica that did
// not have them yet; a restart, since a process may have kept nothing; and the return of a primary
// that acknowledged without having heard that its slots are another's.
func (e Event) canLose() bool {
	switch e.Kind {
	case Promotion, Restart:
		return !e.Graceful
	case NodeUp:
		return len(e.Slots) > 0
	}
	return false
}

// loss explains a counter that holds less than was acknowledged, or fails.
func (r *reconciliation) loss(c *Check, w row) {
	took := r.takers(w)
	switch {
	case len(took) == 0 && len(r.events) > 0:
		c.fail("%v: stored %d, told %d%s, and nothing that happened to its shard in that time explains it",
			w, w.stored, w.Acknowledged, plus(w.Ambiguous))
		return
	case len(took) == 0:
		c.fail("%v: stored %d, told %d%s", w, w.stored, w.Acknowledged, plus(w.Ambiguous))
		return
	}
	l := Loss{Shard: took[0].held(), Events: took}
	if r.Durable {
		c.fail("%v: stored %d, told %d%s, after %s: durable mode promised that what is acknowledged outlives that",
			w, w.stored, w.Acknowledged, plus(w.Ambiguous), l.by())
	}
	i := slices.IndexFunc(r.losses, func(o Loss) bool {
		return o.Shard == l.Shard && slices.EqualFunc(o.Events, l.Events, sameEvent)
	})
	if i < 0 {
		i = len(r.losses)
		r.losses = append(r.losses, l)
	}
	r.losses[i].Counters++
	r.losses[i].Lost += w.lost()
}

// held returns the primary that held the slots before the event.
func (e Event) held() string {
	if e.Kind == Promotion && e.Was != "" {
		return e.Was
	}
	return e.Node
}

func sameEvent(a, b Event) bool {
	return a.Kind == b.Kind && a.Node == b.Node && a.Was == b.Was && a.From.Equal(b.From) && a.To.Equal(b.To)
}

// takers returns the events that may have taken counts from a row's counter: those that can lose, to
// the shard that held its slot, between the time when the first acknowledged count was asked
// for and the reading. Where the first time is not known, none.
func (r *reconciliation) takers(w row) []Event {
	if w.First.IsZero() {
		return nil
	}
	var took []Event
	for _, e := range r.events {
		if e.canLose() && !e.To.Before(w.First) && !e.From.After(w.when) && r.concerns(e, w.slot) {
			took = append(took, e)
		}
	}
	return took
}

// concerns says whether an event is about a slot. One that names no slots is about what its node held
// then, which is worked out backwards from the end.
func (r *reconciliation) concerns(e Event, slot int) bool {
	if len(e.Slots) > 0 {
		return owner([]Shard{{Slots: e.Slots}}, slot) >= 0
	}
	holder := ""
	if i := owner(r.Book.shards, slot); i >= 0 {
		holder = r.Book.shards[i].Node
	}
	for _, o := range slices.Backward(r.events) {
		if sameEvent(o, e) {
			return e.Node == holder
		}
		handed := owner([]Shard{{Slots: o.Slots}}, slot) >= 0 && (o.Kind == Promotion || o.Kind == SlotsMoved) ||
			o.Kind == Promotion && len(o.Slots) == 0
		if handed && o.Node == holder && o.Was != "" {
			holder = o.Was
		}
	}
	return false
}
