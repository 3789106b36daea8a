package servertest

import (
	"context"
	"fmt"
	"net"

	"github.com/redis/go-redis/v9"
)

const slots = 16384

// A Member is a server that [Form] is to make a node of a cluster.
type Member struct {
	Client *redis.Client // talks to this server alone
	Bus    string        // ip:port where the other servers find it; a name will not do
}

// Form makes one cluster of servers that run with cluster-enabled, hold nothing and
// know nobody. The first half become primaries, with equal shares of the slots in
// ascending order, and each of the others the replica of the primary that is half
// the list before it. It returns when the cluster is [Whole]. If it fails, the servers may be
// half joined, and are of no further use.
func Form(ctx context.Context, members []Member) error {
	half := len(members) / 2
	if half == 0 || len(members)%2 != 0 {
		return fmt.Errorf("form a cluster of %d servers: an even number is needed", len(members))
	}
	ids := make([]string, half)
	for i, m := range members[:half] {
		var err error
		if ids[i], err = m.Client.ClusterMyID(ctx).Result(); err != nil {
			return fmt.Errorf("%s: %w", m.Bus, err)
		}
		// Distinct from the start, or the nodes meet as equals and settle it among
		// themselves, which takes seconds and leaves to chance who wins.
		err = m.Client.Do(ctx, "CLUSTER", "SET-CONFIG-EPOCH", i+1).Err()
		if err == nil {
			err = m.Client.ClusterAddSlotsRange(ctx, i*slots/half, (i+1)*slots/half-1).Err()
		}
		if err != nil {
			return fmt.Errorf("give %s its slots: %w", m.Bus, err)
		}
	}
	if err := meet(ctx, members); err != nil {
		return err
	}
	for i, m := range members[half:] {
		// Refused until the replica has heard of the primary.
		err := until(ctx, func() error { return m.Client.ClusterReplicate(ctx, ids[i]).Err() })
		if err != nil {
			return fmt.Errorf("make %s a replica of %s: %w", m.Bus, members[i].Bus, err)
		}
	}
	clients := make([]*redis.Client, len(members))
	for i, m := range members {
		clients[i] = m.Client
	}
	return WaitWhole(ctx, clients)
}

// meet introduces each member to each other one. Introducing all to the first would
// do, and the word would spread, but only as fast as gossip does.
func meet(ctx context.Context, members []Member) error {
	for i, m := range members {
		for _, peer := range members[:i] {
			host, port, err := net.SplitHostPort(peer.Bus)
			if err == nil {
				err = m.Client.ClusterMeet(ctx, host, port).Err()
			}
			if err != nil {
				return fmt.Errorf("introduce %s to %s: %w", m.Bus, peer.Bus, err)
			}
		}
	}
	return nil
}

// WaitWhole waits until the cluster is [Whole] or the context ends; then the error says what is missing.
func WaitWhole(ctx context.Context, clients []*redis.Client) error {
	err := until(ctx, func() error { return Whole(ctx, clients) })
	if err != nil {
		return fmt.Errorf("the cluster is not whole: %w", err)
	}
	return nil
}

// Whole says what a cluster lacks of being whole, or nil: the clients are to each of
// its nodes; all of them answer and agree who serves which slots; every slot is
// served; every node is a primary with slots or the replica of one; and every primary
// has a replica, which holds at least what the primary held when Whole was called.
func Whole(ctx context.Context, clients []*redis.Client) error {
	nodes := make([]view, len(clients))
	for i, c := range clients {
		var err error
		if nodes[i], err = look(ctx, c); err != nil {
			return fmt.Errorf("%s: %w", c.Options().Addr, err)
		}
	}
	if err := agree(nodes); err != nil {
		return err
	}
	offsets := map[string]int64{}
	for _, n := range nodes {
		offsets[n.id] = n.offset
	}
	for _, n := range nodes {
		if n.primary {
			continue
		}
		// Asked again: what it said above may be older than what its primary said.
		now, err := look(ctx, n.client)
		if err != nil {
			return fmt.Errorf("%s: %w", n.addr, err)
		}
		if err := now.inStep(offsets[n.replicaOf()]); err != nil {
			return err
		}
	}
	return nil
}

// agree says why the nodes' views do not make a whole cluster.
func agree(nodes []view) error {
	for _, n := range nodes {
		if !n.ok {
			return fmt.Errorf("%s does not see all slots served", n.addr)
		}
		if n.known != len(nodes) {
			return fmt.Errorf("%s knows %d nodes of %d", n.addr, n.known, len(nodes))
		}
		if n.slots() != nodes[0].slots() {
			return fmt.Errorf("%s and %s disagree who serves which slots", n.addr, nodes[0].addr)
		}
	}
	if got := nodes[0].members(); got != len(nodes) {
		return fmt.Errorf("%d nodes of %d serve slots or replicate one that does", got, len(nodes))
	}
	for _, s := range nodes[0].shards {
		if len(s.Nodes) < 2 {
			return fmt.Errorf("the primary %s has no replica", s.Nodes[0].Addr)
		}
	}
	for _, n := range nodes {
		if n.primary != (n.replicaOf() == "") {
			return fmt.Errorf("%s is primary %t, but its peers say otherwise", n.addr, n.primary)
		}
	}
	return nil
}
