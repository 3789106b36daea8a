package clustertest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/slotlimit/slotlimit/keys"
)

// cluster answers the CLUSTER commands. All nodes see the same topology at once:
// there is no gossip that takes its time.
func (s *session) cluster(args []string, now time.Time) {
	sub := strings.ToUpper(args[1])
	switch {
	case sub == "SLOTS" && len(args) == 2:
		s.clusterSlots()
	case sub == "SHARDS" && len(args) == 2:
		s.clusterShards()
	case sub == "NODES" && len(args) == 2:
		s.clusterNodes(s.node.cluster.nodes[:])
	case (sub == "REPLICAS" || sub == "SLAVES") && len(args) == 3:
		s.clusterReplicas(args[2])
	case sub == "INFO" && len(args) == 2:
		s.clusterInfo()
	case sub == "MYID" && len(args) == 2:
		s.reply.bulk(s.node.id)
	case sub == "KEYSLOT" && len(args) == 3:
		s.reply.integer(int64(keys.Slot(args[2])))
	case sub == "COUNTKEYSINSLOT" && len(args) == 3, sub == "GETKEYSINSLOT" && len(args) == 4:
		s.clusterKeys(args)
	case sub == "SETSLOT" && len(args) >= 4:
		s.setSlot(args)
	case sub == "FAILOVER" && len(args) <= 3:
		s.failover(args)
	default:
		s.reply.fail(errSubcommand("CLUSTER", args[1]))
	}
}

// clusterSlots writes each range of slots with the nodes that serve it, primary first.
func (s *session) clusterSlots() {
	c := s.node.cluster
	type block struct {
		Range
		shard int
	}
	var blocks []block
	for shard := range c.shards {
		for _, r := range c.ranges(shard) {
			blocks = append(blocks, block{r, shard})
		}
	}
	slices.SortFunc(blocks, func(a, b block) int { return a.First - b.First })
	s.reply.array(len(blocks))
	for _, b := range blocks {
		// A dead replica is left out, a dead primary is not: clients must see the shard.
		listed := []*node{c.nodes[c.primary[b.shard]]}
		if p := listed[0].partner(); p.alive {
			listed = append(listed, p)
		}
		s.reply.array(2 + len(listed))
		s.reply.integer(int64(b.First))
		s.reply.integer(int64(b.Last))
		for _, n := range listed {
			s.reply.array(4)
			s.reply.bulk(host)
			s.reply.integer(int64(n.port))
			s.reply.bulk(n.id)
			s.reply.array(0)
		}
	}
}

func (s *session) clusterShards() {
	c := s.node.cluster
	out := &s.reply
	out.array(len(c.shards))
	for shard := range c.shards {
		out.fields(2)
		out.bulk("slots")
		ranges := c.ranges(shard)
		out.array(2 * len(ranges))
		for _, r := range ranges {
			out.integer(int64(r.First))
			out.integer(int64(r.Last))
		}
		out.bulk("nodes")
		primary := c.nodes[c.primary[shard]]
		out.array(2)
		for _, n := range []*node{primary, primary.partner()} {
			n.describe(out)
		}
	}
}

func (n *node) describe(out *reply) {
	role, health := "replica", "online"
	if n.isPrimary() {
		role = "master"
	}
	if !n.alive {
		health = "fail"
	}
	out.fields(7)
	for _, f := range [][2]string{{"id", n.id}, {"port", ""}, {"ip", host}, {"endpoint", host}, {"role", role}, {"replication-offset", ""}, {"health", health}} {
		out.bulk(f[0])
		switch f[0] {
		case "port":
			out.integer(int64(n.port))
		case "replication-offset":
			out.integer(0)
		default:
			out.bulk(f[1])
		}
	}
}

func (s *session) clusterNodes(list []*node) {
	var b strings.Builder
	for _, n := range list {
		b.WriteString(n.line(s.node) + "\n")
	}
	s.reply.verbatim(b.String())
}

// line is the node as CLUSTER NODES of `self` lists it.
func (n *node) line(self *node) string {
	var flags []string
	if n == self {
		flags = append(flags, "myself")
	}
	primary, link := "-", "connected"
	if n.isPrimary() {
		flags = append(flags, "master")
	} else {
		flags = append(flags, "slave")
		primary = n.partner().id
	}
	if !n.alive {
		flags, link = append(flags, "fail"), "disconnected"
	}
	epoch := n.epoch
	if !n.isPrimary() {
		epoch = n.partner().epoch
	}
	line := fmt.Sprintf("%s %s:%d@%d %s %s 0 0 %d %s", n.id, host, n.port, n.port+10000,
		strings.Join(flags, ","), primary, epoch, link)
	if !n.isPrimary() {
		return line
	}
	for _, r := range n.cluster.ranges(n.shard.index) {
		line += " " + strconv.Itoa(r.First)
		if r.Last > r.First {
			line += "-" + strconv.Itoa(r.Last)
		}
	}
	if n != self {
		return line
	}
	// Only a node itself knows what it is moving.
	for slot, to := range n.migrating {
		line += fmt.Sprintf(" [%d->-%s]", slot, n.cluster.nodes[to].id)
	}
	for slot, from := range n.importing {
		line += fmt.Sprintf(" [%d-<-%s]", slot, n.cluster.nodes[from].id)
	}
	return line
}

func (s *session) clusterReplicas(id string) {
	n := s.node.cluster.byID(id)
	switch {
	case n == nil:
		s.reply.fail("ERR Unknown node " + id)
	case !n.isPrimary():
		s.reply.fail("ERR The specified node is not a master")
	default:
		s.reply.array(1)
		s.reply.bulk(n.partner().line(s.node))
	}
}

func (c *Cluster) byID(id string) *node {
	for _, n := range c.nodes {
		if n.id == id {
			return n
		}
	}
	return nil
}

func (s *session) clusterInfo() {
	c := s.node.cluster
	state, assigned, failed := "ok", 0, 0
	if c.down {
		state = "fail"
	}
	serving := map[int8]bool{}
	for _, owner := range c.owner {
		if owner == unassigned {
			continue
		}
		assigned++
		serving[owner] = true
		if !c.nodes[c.primary[owner]].alive {
			failed++
		}
	}
	s.reply.verbatim(fmt.Sprintf("cluster_state:%s\r\ncluster_slots_assigned:%d\r\ncluster_slots_ok:%d\r\n"+
		"cluster_slots_pfail:0\r\ncluster_slots_fail:%d\r\ncluster_known_nodes:%d\r\ncluster_size:%d\r\n"+
		"cluster_current_epoch:%d\r\ncluster_my_epoch:%d\r\ncluster_stats_messages_sent:0\r\n"+
		"cluster_stats_messages_received:0\r\ntotal_cluster_links_buffer_limit_exceeded:0\r\n",
		state, assigned, assigned-failed, failed, Nodes, len(serving), c.epoch, s.node.epoch))
}

// clusterKeys answers COUNTKEYSINSLOT and GETKEYSINSLOT. Both count the keys that
// have expired and were not used since, as in Redis.
func (s *session) clusterKeys(args []string) {
	slot, err := strconv.Atoi(args[2])
	if err != nil {
		s.reply.fail(errNotInteger)
		return
	}
	if slot < 0 || slot >= keys.Slots {
		s.reply.fail("ERR Invalid slot")
		return
	}
	found := s.node.shard.inSlot(slot)
	if len(args) == 3 {
		s.reply.integer(int64(len(found)))
		return
	}
	limit, err := strconv.Atoi(args[3])
	if err != nil || limit < 0 {
		s.reply.fail("ERR Invalid number of keys")
		return
	}
	found = found[:min(limit, len(found))]
	s.reply.array(len(found))
	for _, key := range found {
		s.reply.bulk(key)
	}
}

func (s *session) failover(args []string) {
	n := s.node
	forced := len(args) == 3 && (strings.EqualFold(args[2], "FORCE") || strings.EqualFold(args[2], "TAKEOVER"))
	switch {
	case len(args) == 3 && !forced:
		s.reply.fail(errSyntax)
	case n.isPrimary():
		s.reply.fail("ERR You should send CLUSTER FAILOVER to a replica")
	case !forced && !n.partner().alive:
		s.reply.fail("ERR Master is down or failed, please use CLUSTER FAILOVER FORCE")
	default:
		n.cluster.promote(n)
		s.reply.ok()
	}
}
