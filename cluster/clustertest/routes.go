package clustertest

import (
	"fmt"

	"github.com/slotlimit/slotlimit/keys"
)

// A route is a node's answer to "may I run this here": an error reply, or "" for yes.
// slot is that of the keys, or -1 if there are none.
type route struct {
	refusal string
	slot    int
}

// route decides, as getNodeByQuery of Redis 7.0 does and in its order, whether this
// node runs a command on these keys now. The caller holds Cluster.mu and the shard.
func (s *session) route(names []string, write bool) route {
	if len(names) == 0 {
		return route{slot: -1}
	}
	n, c := s.node, s.node.cluster
	slot := keys.Slot(names[0])
	r := route{slot: slot}
	owner := c.owner[slot]
	if owner == unassigned {
		r.refusal = errUnserved
		return r
	}
	mine := int(owner) == n.shard.index && n.isPrimary()
	to, migrating := n.migrating[slot]
	migrating = migrating && mine
	_, importing := n.importing[slot]
	importing = importing && !mine

	missing, several := 0, false
	for _, key := range names {
		if keys.Slot(key) != slot {
			r.refusal = errCrossSlot
			return r
		}
		several = several || key != names[0]
		if (migrating || importing) && !n.shard.has(key, n.now()) {
			missing++
		}
	}
	switch {
	case c.down:
		r.refusal = errClusterDown
	case migrating && missing > 0 && missing < len(names):
		r.refusal = errTryAgain
	case migrating && missing > 0:
		r.refusal = fmt.Sprintf("ASK %d %s", slot, c.nodes[to].addr)
	case importing && s.asking && several && missing > 0:
		r.refusal = errTryAgain
	case importing && s.asking, mine:
	case s.readOnly && !write && !n.isPrimary() && int(owner) == n.shard.index:
	default:
		r.refusal = fmt.Sprintf("MOVED %d %s", slot, c.nodes[c.primary[owner]].addr)
	}
	return r
}

// judge recomputes cluster_state after the topology changed. The caller holds Cluster.mu.
func (c *Cluster) judge() {
	var serving [Shards]bool
	covered := true
	for _, shard := range c.owner {
		if shard == unassigned {
			covered = false
			continue
		}
		serving[shard] = true
	}
	size, alive := 0, 0
	for shard, has := range serving {
		if !has {
			continue
		}
		size++
		if c.nodes[c.primary[shard]].alive {
			alive++
		} else {
			covered = false
		}
	}
	// Without a majority of the primaries nobody may decide anything.
	c.down = !covered && !c.settings.partial || alive < size/2+1
}
