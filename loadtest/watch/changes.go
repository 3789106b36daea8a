package watch

import (
	"fmt"
	"slices"

	"github.com/slotlimit/slotlimit/loadtest/audit"
)

// Changes returns what happened between two looks, in a fixed order: nodes that went down,
// restarts, nodes that came up, promotions, moves of slots.
func Changes(before, after *Look) []audit.Event {
	d := difference{before: before, after: after}
	for _, id := range after.ids() {
		d.down(id)
	}
	for _, id := range after.ids() {
		d.restart(id)
	}
	for _, id := range after.ids() {
		d.up(id)
	}
	d.owners()
	return d.events
}

type difference struct {
	before, after *Look
	events        []audit.Event
}

// add takes an event that happened between the two looks, unless it has times of its own.
func (d *difference) add(e audit.Event) {
	if e.From.IsZero() {
		e.From = d.before.From
	}
	e.To = d.after.To
	d.events = append(d.events, e)
}

func (d *difference) down(id string) {
	was, is := d.before.Nodes[id], d.after.Nodes[id]
	if !was.down() && is.down() && !was.Seen.IsZero() {
		d.add(audit.Event{Kind: audit.NodeDown, Node: is.Addr, Slots: d.before.owned(id), From: was.Seen})
	}
}

func (d *difference) restart(id string) {
	was, is := d.before.Nodes[id], d.after.Nodes[id]
	if was.RunID == is.RunID || was.RunID == "" {
		return
	}
	e := audit.Event{
		Kind: audit.Restart, Node: is.Addr, From: was.Seen,
		Slots:  union(d.before.owned(id), d.after.owned(id)),
		Detail: fmt.Sprintf("run id %.8s -> %.8s", was.RunID, is.RunID),
	}
	if len(e.Slots) > 0 {
		e.Slots = union(e.Slots, was.Importing)
	}
	if is.Keys == 0 && was.Keys > 0 {
		e.Detail += fmt.Sprintf(", came back empty and had %d keys", was.Keys)
	}
	d.add(e)
}

func (d *difference) up(id string) {
	was, is := d.before.Nodes[id], d.after.Nodes[id]
	switch {
	case is.Missed > 0:
	case was.Seen.IsZero():
		d.add(audit.Event{Kind: audit.NodeUp, Node: is.Addr, Detail: "new"})
	case was.Missed > 0 && was.RunID == is.RunID:
		stale := d.before.stale(id)
		if !was.down() && len(stale) == 0 {
			return // late once
		}
		e := audit.Event{Kind: audit.NodeUp, Node: is.Addr, Slots: stale}
		if len(stale) > 0 {
			e.Detail = "had not heard that its slots are another's"
		}
		d.add(e)
	}
}

// A handover is the slots that went from one owner to another.
type handover struct{ from, to string }

// owners adds the promotions and the moves of slots.
func (d *difference) owners() {
	went := map[handover][]int{}
	for slot, to := range d.after.Owners {
		if from := d.before.Owners[slot]; from != to && from != "" && to != "" {
			went[handover{from, to}] = append(went[handover{from, to}], slot)
		}
	}
	for _, id := range d.after.ids() {
		was, is := d.before.Nodes[id], d.after.Nodes[id]
		if from := d.replaced(id, went); from != "" {
			d.promotion(id, from)
			delete(went, handover{from, id})
		} else if was.Primary && is.Primary && was.RunID == is.RunID && is.Epoch > was.Epoch && was.ReplID != is.ReplID {
			d.again(id)
		}
	}
	d.moves(went)
}

// replaced returns the primary that a node took over from as its replica, or "". A former primary that
// has not even heard of its own replacement can be promoted back. What a replica got from others than its primary
// had moved just before or after.
func (d *difference) replaced(id string, went map[handover][]int) string {
	was := d.before.Nodes[id]
	if was.Primary && len(d.before.stale(id)) == 0 {
		return ""
	}
	if len(went[handover{was.PrimaryID, id}]) > 0 {
		return was.PrimaryID
	}
	most := ""
	for _, from := range d.before.ids() {
		if len(went[handover{from, id}]) > len(went[handover{most, id}]) {
			most = from
		}
	}
	return most
}

// promotion adds that a replica took over from its primary. All that either of the two owned is
// concerned, and what was on its way there: what moved just before or after was in the hands of both.
func (d *difference) promotion(id, from string) {
	d.add(audit.Event{
		Kind: audit.Promotion, Node: d.after.addr(id), Was: d.before.addr(from),
		Slots:  union(d.before.owned(from), d.after.owned(id), d.before.Nodes[from].Importing),
		Detail: epochs(d.before.epoch(from), d.after.epoch(id)),
	})
}

// again adds that a primary lost its slots and got them back: the config epoch rises with a move
// of slots, too, but a new stream of writes is begun by a promotion alone.
func (d *difference) again(id string) {
	d.add(audit.Event{
		Kind: audit.Promotion, Node: d.after.addr(id),
		Slots:  union(d.before.owned(id), d.after.owned(id), d.before.Nodes[id].Importing),
		Detail: epochs(d.before.epoch(id), d.after.epoch(id)) + ", lost its slots and got them back between two looks",
	})
}

func epochs(was, is int64) string { return fmt.Sprintf("config epoch %d -> %d", was, is) }

// moves adds the slots that went from a primary to another, promotions left out.
func (d *difference) moves(went map[handover][]int) {
	for _, to := range d.after.ids() {
		for _, from := range d.before.ids() {
			slots := went[handover{from, to}]
			if len(slots) == 0 {
				continue
			}
			d.add(audit.Event{
				Kind: audit.SlotsMoved, Node: d.after.addr(to), Was: d.before.addr(from), Graceful: true,
				Slots:  ranges(func(slot int) bool { _, ok := slices.BinarySearch(slots, slot); return ok }),
				Detail: fmt.Sprintf("%d slots", len(slots)),
			})
		}
	}
}
