package clustertest

import (
	"strconv"
	"strings"
	"time"

	"github.com/slotlimit/slotlimit/keys"
)

// setSlot answers CLUSTER SETSLOT, so that the tools which move slots of a real
// cluster work here too. The caller holds Cluster.mu for itself alone.
func (s *session) setSlot(args []string) {
	n, c := s.node, s.node.cluster
	if !n.isPrimary() {
		s.reply.fail("ERR You can use SETSLOT only with masters.")
		return
	}
	slot, err := strconv.Atoi(args[2])
	if err != nil || slot < 0 || slot >= keys.Slots {
		s.reply.fail("ERR Invalid or out of range slot")
		return
	}
	state := strings.ToUpper(args[3])
	if state == "STABLE" && len(args) == 4 {
		delete(n.migrating, slot)
		delete(n.importing, slot)
		s.reply.ok()
		return
	}
	if len(args) != 5 || state != "MIGRATING" && state != "IMPORTING" && state != "NODE" {
		s.reply.fail("ERR Invalid CLUSTER SETSLOT action or number of arguments. Try CLUSTER HELP")
		return
	}
	mine := int(c.owner[slot]) == n.shard.index
	if state == "MIGRATING" && !mine {
		s.reply.fail("ERR I'm not the owner of hash slot " + args[2])
		return
	}
	if state == "IMPORTING" && mine {
		s.reply.fail("ERR I'm already the owner of hash slot " + args[2])
		return
	}
	other := c.byID(args[4])
	if other == nil {
		s.reply.fail("ERR I don't know about node " + args[4])
		return
	}
	if !other.isPrimary() {
		s.reply.fail("ERR Target node is not a master")
		return
	}
	s.setState(slot, state, other)
}

func (s *session) setState(slot int, state string, other *node) {
	n, c := s.node, s.node.cluster
	switch state {
	case "MIGRATING":
		n.migrating[slot] = other.index
	case "IMPORTING":
		n.importing[slot] = other.index
	case "NODE":
		if other != n && len(n.shard.inSlot(slot)) > 0 {
			s.reply.fail("ERR Can't assign hashslot " + strconv.Itoa(slot) +
				" to a different node while I still hold keys for this hash slot.")
			return
		}
		c.settle(slot, other)
	}
	s.reply.ok()
}

// migrate answers MIGRATE: it moves keys to the node at the address, without
// serialising them, so COPY is not known. The caller holds Cluster.mu for itself alone.
func (s *session) migrate(args []string, now time.Time) {
	var to *node
	for _, n := range s.node.cluster.nodes {
		if (args[1] == host || args[1] == "localhost") && strconv.Itoa(n.port) == args[2] {
			to = n
		}
	}
	replace := false
	for _, a := range args[6:] {
		if strings.EqualFold(a, "KEYS") {
			break
		}
		switch strings.ToUpper(a) {
		case "REPLACE":
			replace = true
		default:
			s.reply.fail(errSyntax)
			return
		}
	}
	if to == nil || !to.alive {
		s.reply.fail("IOERR error or timeout connecting to the client")
		return
	}
	from, moved := s.node.shard, 0
	for _, key := range lookup("MIGRATE").keys(args) {
		if !from.has(key, now) {
			continue
		}
		if !replace && to.shard.has(key, to.now()) {
			s.reply.fail("ERR Target instance replied with error: BUSYKEY Target key name already exists.")
			return
		}
		from.transfer(key, to.shard)
		moved++
	}
	if moved == 0 {
		s.reply.status("NOKEY")
		return
	}
	s.reply.ok()
}
