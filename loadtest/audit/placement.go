package audit

import (
	"fmt"
	"maps"
	"slices"

	"github.com/slotlimit/slotlimit/keys"
)

// placement checks that a key sits on the primary that owns its slot and nowhere else,
// that all keys of a user are in the slot of the user's hash tag, and that the nodes
// compute the same slots as this process.
func (r *reconciliation) placement(c *Check) {
	users, found := 0, 0
	for i, w := range r.rows {
		if i == 0 || w.User != r.rows[i-1].User {
			users++
		}
		if w.found != nil {
			found++
		}
		r.place(c, w)
	}
	for _, s := range r.Book.sortedStrays() {
		if r.moved(s) {
			continue
		}
		found++
		where := "no node owns it"
		if s.owner != "" {
			where = s.owner + " owns it"
		}
		c.fail("%v: key is on %s, but its slot is %d and %s", r.row(s.key), s.node, s.slot, where)
	}
	for _, d := range r.Book.doubles {
		found++
		c.fail("%v: key is on %s and on %s", r.row(d.key), d.node, d.other)
	}
	for _, key := range slices.Sorted(maps.Keys(r.Book.slots)) {
		if client, server := keys.Slot(key), r.Book.slots[key]; client != server {
			c.fail("%v: slot %d as computed here, %d as the node says", r.row(key), client, server)
		}
	}
	c.Detail = fmt.Sprintf("%d keys on %d primaries, each on its slot's owner; %d users, each in one slot; %d slots as the nodes compute them",
		found, len(r.Book.shards), users, len(r.Book.slots))
	if !c.OK {
		c.Detail = fmt.Sprintf("%d keys on %d primaries, %d users", found, len(r.Book.shards), users)
	}
}

// moved says that a key which a pass found out of place was only on its way: its slot
// changed hands since, or something happened to it, so that the nodes' own pictures may have been behind.
// What is out of place in the final pass is so for good.
func (r *reconciliation) moved(s stray) bool {
	if s.final {
		return false
	}
	if i := owner(r.Book.shards, s.slot); i >= 0 && r.Book.shards[i].Node != s.owner {
		return true
	}
	return slices.ContainsFunc(r.events, func(e Event) bool {
		return (e.Kind == SlotsMoved || e.Kind == Promotion || e.Kind == Restart) && r.concerns(e, s.slot)
	})
}

// place checks the slot of one key. Each key is held against the user's hash tag and
// not against the user's other keys, so that a key without the tag is found even if it
// is the only one.
func (r *reconciliation) place(c *Check, w row) {
	if w.User == "" {
		return // a key that nobody was told of and that names no user: counters reports it
	}
	if home, ok := r.home(w); ok && home != w.slot {
		c.fail("%v: key %q is in slot %d, but the user's slot is %d", w, w.Key, w.slot, home)
	}
}

// home returns the slot of a user. A digest is already what stands in the key.
func (r *reconciliation) home(w row) (int, bool) {
	if w.untold {
		return 0, false // its user was read from the key itself
	}
	part, err := r.Promise.Layout.User(w.User)
	return keys.Slot(part), err == nil
}
