package faults

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/slotlimit/slotlimit/cluster"
	"github.com/slotlimit/slotlimit/keys"
)

// A Node is one server of the cluster.
type Node struct {
	ID   string
	Addr string // for clients here
	Bus  string // ip:port, for its peers

	client  *redis.Client
	machine Machine
	shard   string // the shard's name, from the start on
}

// A state is what a node is at a moment, as its peers see it.
type state struct {
	*Node
	primary bool
	of      string // id of its primary, if it is a replica
	failing bool
	epoch   string
	bus     string
	slots   []SlotRange
}

// newClient makes a client of one node that sends each command once.
func newClient(o *redis.ClusterOptions, addr string) *redis.Client {
	return redis.NewClient(&redis.Options{
		Addr: addr, Dialer: o.Dialer, Username: o.Username, Password: o.Password,
		Protocol: 2, DisableIdentity: true, MaxRetries: -1, DialerRetries: 1, DialTimeout: time.Second,
		ReadTimeout: 5 * time.Second, WriteTimeout: 5 * time.Second, ContextTimeoutEnabled: true,
		MaintNotificationsConfig: o.MaintNotificationsConfig,
	})
}

// reach says whether a node takes connections. Whoever waits for one asks this first:
// a client's pool that has dialled in vain goes on doing so.
func reach(ctx context.Context, c *redis.Client) error {
	o := c.Options()
	conn, err := o.Dialer(ctx, o.Network, o.Addr)
	if err != nil {
		return err
	}
	return conn.Close()
}

// members returns all nodes that a cluster has, with clients of their own.
func members(ctx context.Context, client *cluster.Client) (map[string]*Node, error) {
	c, ok := client.UniversalClient.(*redis.ClusterClient)
	if !ok {
		return nil, fmt.Errorf("faults need a cluster, not a %T", client.UniversalClient)
	}
	t, err := client.Topology(ctx)
	if err != nil {
		return nil, err
	}
	all := map[string]*Node{}
	for _, s := range t.Shards {
		for _, n := range append([]cluster.Node{s.Primary}, s.Replicas...) {
			all[n.ID] = &Node{ID: n.ID, Addr: n.Addr, client: newClient(c.Options(), n.Addr), shard: s.Primary.Addr}
		}
	}
	return all, nil
}

// look asks a node for all nodes, and returns those that are known.
func look(ctx context.Context, all map[string]*Node, asked *Node) ([]state, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if err := reach(ctx, asked.client); err != nil {
		return nil, err
	}
	text, err := asked.client.ClusterNodes(ctx).Result()
	if err != nil {
		return nil, err
	}
	var states []state
	for line := range strings.Lines(text) {
		s, ok := parseNode(line)
		if n := all[s.id]; ok && n != nil {
			s.Node = n
			states = append(states, s.state)
		}
	}
	slices.SortFunc(states, func(a, b state) int {
		return cmp.Or(cmp.Compare(first(a), first(b)), cmp.Compare(a.ID, b.ID))
	})
	return states, nil
}

func first(s state) int {
	if len(s.slots) == 0 {
		return keys.Slots
	}
	return s.slots[0].First
}

type namedState struct {
	state
	id string
}

// parseNode reads a line of CLUSTER NODES:
//
//	id ip:port@bus,hostname flags primary ping pong epoch link slots...
func parseNode(line string) (s namedState, ok bool) {
	f := strings.Fields(line)
	if len(f) < 8 {
		return s, false
	}
	s.id = f[0]
	s.bus, _, _ = strings.Cut(f[1], "@")
	flags := strings.Split(f[2], ",")
	s.primary = slices.Contains(flags, "master")
	s.failing = slices.Contains(flags, "fail") || slices.Contains(flags, "fail?") || slices.Contains(flags, "handshake")
	s.of, s.epoch = f[3], f[6]
	for _, r := range f[8:] {
		if strings.HasPrefix(r, "[") {
			continue // on its way
		}
		from, to, isRange := strings.Cut(r, "-")
		if !isRange {
			to = from
		}
		a, err1 := strconv.Atoi(from)
		b, err2 := strconv.Atoi(to)
		if err1 != nil || err2 != nil {
			return s, false
		}
		s.slots = append(s.slots, SlotRange{a, b})
	}
	return s, true
}

// whole says what the cluster lacks: every node answers, sees all slots served by nodes that answer,
// and agrees with the others about them; every replica is connected to its primary.
func whole(ctx context.Context, all map[string]*Node) error {
	var mu sync.Mutex
	views := map[string]string{}
	var errs []error
	var wg sync.WaitGroup
	for _, n := range all {
		wg.Go(func() {
			view, err := health(ctx, all, n)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", n.Addr, err))
			}
			views[view] = n.Addr
		})
	}
	wg.Wait()
	if len(errs) == 0 && len(views) != 1 {
		errs = append(errs, fmt.Errorf("%v see the slots differently", slices.Sorted(maps.Values(views))))
	}
	return errors.Join(errs...)
}

func health(ctx context.Context, all map[string]*Node, n *Node) (view string, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	states, err := look(ctx, all, n)
	if err != nil {
		return "", err
	}
	info, err := n.client.ClusterInfo(ctx).Result()
	if err != nil {
		return "", err
	}
	if f := fields(info); f["cluster_state"] != "ok" || f["cluster_slots_ok"] != strconv.Itoa(keys.Slots) {
		return "", fmt.Errorf("it does not see all slots served: %s of %d", f["cluster_slots_ok"], keys.Slots)
	}
	repl, err := n.client.Info(ctx, "replication").Result()
	if err != nil {
		return "", err
	}
	if f := fields(repl); f["role"] == "slave" && f["master_link_status"] != "up" {
		return "", errors.New("it is not connected to its primary")
	}
	for _, s := range states {
		if s.failing {
			return "", fmt.Errorf("it takes %s to have failed", s.Addr)
		}
		view += fmt.Sprintln(s.ID, s.primary, s.of, s.slots)
	}
	return view, nil
}

// fields reads the lines "name:value" of an INFO reply.
func fields(info string) map[string]string {
	m := map[string]string{}
	for line := range strings.Lines(info) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			m[name] = value
		}
	}
	return m
}

// until calls ok until it returns nil; at the end of ctx it returns ok's last error that was
// not about that end.
func until(ctx context.Context, ok func() error) (err error) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		now := ok()
		if now == nil {
			return nil
		}
		if err == nil || ctx.Err() == nil {
			err = now
		}
		select {
		case <-ctx.Done():
			return err
		case <-tick.C:
		}
	}
}

// host is the ip of a node for its peers, and the port.
func (n *Node) host() (ip, port string) {
	ip, port, err := net.SplitHostPort(n.Bus)
	if err != nil || ip == "" {
		ip, port, _ = net.SplitHostPort(n.Addr)
	}
	return ip, port
}
