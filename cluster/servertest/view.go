package servertest

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// A view is what one node says of itself and of the cluster.
type view struct {
	client  *redis.Client
	addr    string
	id      string
	ok      bool                // it sees every slot served by a node that answers
	known   int                 // nodes that it knows, itself included
	shards  []redis.ClusterSlot // slot ranges, ascending; first their primary, then its replicas
	primary bool
	linkUp  bool  // a replica's: it is connected to its primary, and its first copy is done
	offset  int64 // bytes of the stream of writes that it has produced, or a replica has taken in
}

// look asks a node for its view.
func look(ctx context.Context, c *redis.Client) (view, error) {
	v := view{client: c, addr: c.Options().Addr}
	if err := reach(ctx, c); err != nil {
		return v, err
	}
	pipe := c.Pipeline()
	id := pipe.ClusterMyID(ctx)
	clusterInfo := pipe.ClusterInfo(ctx)
	clusterSlots := pipe.ClusterSlots(ctx)
	replication := pipe.Info(ctx, "replication")
	if _, err := pipe.Exec(ctx); err != nil {
		return v, err
	}
	v.id = id.Val()
	state := fields(clusterInfo.Val())
	// slots_ok does not count the slots of a primary that is merely suspected.
	v.ok = state["cluster_state"] == "ok" && state["cluster_slots_ok"] == strconv.Itoa(slots)
	v.known, _ = strconv.Atoi(state["cluster_known_nodes"])
	v.shards = clusterSlots.Val()
	slices.SortFunc(v.shards, func(a, b redis.ClusterSlot) int { return a.Start - b.Start })

	repl := fields(replication.Val())
	v.primary = repl["role"] == "master"
	v.linkUp = repl["master_link_status"] == "up" && repl["master_sync_in_progress"] == "0"
	offset := repl["slave_repl_offset"]
	if v.primary {
		offset = repl["master_repl_offset"]
	}
	var err error
	if v.offset, err = strconv.ParseInt(offset, 10, 64); err != nil {
		return v, fmt.Errorf("its replication offset: %w", err)
	}
	return v, nil
}

// reach says whether the client's server takes connections. Whoever waits for a server
// asks this first: the client's pool prints a line for each dial that fails.
func reach(ctx context.Context, c *redis.Client) error {
	o := c.Options()
	conn, err := o.Dialer(ctx, o.Network, o.Addr)
	if err != nil {
		return err
	}
	return conn.Close()
}

// slots puts the shards in a form that is equal for nodes that agree.
func (v view) slots() string {
	var b strings.Builder
	for _, s := range v.shards {
		ids := make([]string, len(s.Nodes))
		for i, n := range s.Nodes {
			ids[i] = n.ID
		}
		slices.Sort(ids[1:]) // the order of replicas means nothing
		fmt.Fprintf(&b, "%d-%d %s\n", s.Start, s.End, strings.Join(ids, " "))
	}
	return b.String()
}

// members counts the nodes that the shards name.
func (v view) members() int {
	ids := map[string]bool{}
	for _, s := range v.shards {
		for _, n := range s.Nodes {
			ids[n.ID] = true
		}
	}
	return len(ids)
}

// replicaOf is the id of the node's primary, or "" if the shards show the node as none's replica.
func (v view) replicaOf() string {
	for _, s := range v.shards {
		for _, n := range s.Nodes[1:] {
			if n.ID == v.id {
				return s.Nodes[0].ID
			}
		}
	}
	return ""
}

// inStep says why a replica does not hold all that its primary had produced at the offset.
func (v view) inStep(offset int64) error {
	if !v.linkUp || v.offset < offset {
		return fmt.Errorf("the replica %s is not in step: connected %t, at %d of %d", v.addr, v.linkUp, v.offset, offset)
	}
	return nil
}

// owner is the id of the primary that serves the slot, or "".
func (v view) owner(slot int) string {
	for _, s := range v.shards {
		if s.Start <= slot && slot <= s.End {
			return s.Nodes[0].ID
		}
	}
	return ""
}

// fields parses the lines "name:value" of an INFO reply.
func fields(info string) map[string]string {
	m := map[string]string{}
	for line := range strings.Lines(info) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			m[name] = value
		}
	}
	return m
}
