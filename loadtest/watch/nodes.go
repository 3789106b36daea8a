package watch

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"syscall"

	"github.com/slotlimit/slotlimit/keys"
	"github.com/slotlimit/slotlimit/loadtest/audit"
)

// refused says that nothing listens at a node's address.
func refused(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) }

// A line is what a node's view says of one node: a line of CLUSTER NODES.
type line struct {
	id, addr  string
	primary   bool
	primaryID string
	epoch     int64
	slots     []audit.SlotRange
	importing []audit.SlotRange // only in a node's line of itself
}

// parseNodes parses CLUSTER NODES. Nodes that nobody can reach by this view, since their address is not
// known or they have yet to shake hands, are left out.
//
//	<id> <host:port@bus,name> <flags> <primary> <ping> <pong> <epoch> <link> <slot> <first-last> [slot-<-from]
func parseNodes(text string) ([]line, error) {
	var all []line
	for row := range strings.Lines(text) {
		f := strings.Fields(row)
		if len(f) < 8 {
			return nil, fmt.Errorf("watch: a line of CLUSTER NODES has %d fields: %q", len(f), row)
		}
		if strings.Contains(f[2], "noaddr") || strings.Contains(f[2], "handshake") {
			continue
		}
		l := line{id: f[0], primary: strings.Contains(f[2], "master")}
		l.addr, _, _ = strings.Cut(f[1], "@")
		if f[3] != "-" {
			l.primaryID = f[3]
		}
		var err error
		if l.epoch, err = strconv.ParseInt(f[6], 10, 64); err != nil {
			return nil, fmt.Errorf("watch: the epoch in CLUSTER NODES: %w", err)
		}
		for _, word := range f[8:] {
			if err := l.slot(word); err != nil {
				return nil, err
			}
		}
		all = append(all, l)
	}
	return all, nil
}

// slot takes one word of the slots.
func (l *line) slot(word string) error {
	if inner, moving := strings.CutPrefix(word, "["); moving {
		if slot, _, arriving := strings.Cut(inner, "-<-"); arriving {
			n, err := strconv.Atoi(slot)
			l.importing = append(l.importing, audit.SlotRange{First: n, Last: n})
			return err
		}
		return nil // leaving: it is among the node's own slots, too
	}
	first, last, isRange := strings.Cut(word, "-")
	if !isRange {
		last = first
	}
	a, err := strconv.Atoi(first)
	if err != nil {
		return fmt.Errorf("watch: slots %q in CLUSTER NODES: %w", word, err)
	}
	b, err := strconv.Atoi(last)
	if err != nil || a < 0 || b >= keys.Slots {
		return fmt.Errorf("watch: slots %q in CLUSTER NODES", word)
	}
	l.slots = append(l.slots, audit.SlotRange{First: a, Last: b})
	return nil
}

// claim makes the node the owner of its slots, where no view with a higher epoch says
// otherwise.
func (l line) claim(look *Look) {
	if !l.primary {
		return
	}
	for _, r := range l.slots {
		for slot := r.First; slot <= r.Last; slot++ {
			if look.Owners[slot] == "" || l.epoch > look.epochs[slot] || l.epoch == look.epochs[slot] && l.id < look.Owners[slot] {
				look.epochs[slot], look.Owners[slot] = l.epoch, l.id
			}
		}
	}
}
