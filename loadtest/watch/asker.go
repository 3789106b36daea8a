package watch

import (
	"cmp"
	"context"
	"maps"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/slotlimit/slotlimit/cluster"
)

// askTimeout is how long a node may take to answer. A node that hangs makes a look last so
// long, so it is short; one that is only late is forgiven by [missesDown].
const askTimeout = 500 * time.Millisecond

// An asker asks all nodes.
type asker struct {
	options *redis.ClusterOptions
	clients map[string]*redis.Client // by address
	addrs   map[string]string        // of nodes, by name, as the topology has them
}

func newAsker(options *redis.ClusterOptions, t cluster.Topology) *asker {
	a := &asker{options: options, clients: map[string]*redis.Client{}, addrs: map[string]string{}}
	for _, s := range t.Shards {
		for _, n := range append([]cluster.Node{s.Primary}, s.Replicas...) {
			a.addrs[n.ID] = n.Addr
		}
	}
	return a
}

func (a *asker) close() {
	for _, c := range a.clients {
		_ = c.Close()
	}
}

// client returns the client of one node. It dials as the cluster's client does, and never repeats
// a command: no answer is an answer, too.
func (a *asker) client(addr string) *redis.Client {
	if a.clients[addr] == nil {
		o := a.options
		a.clients[addr] = redis.NewClient(&redis.Options{
			Addr: addr, Dialer: o.Dialer, TLSConfig: o.TLSConfig,
			Username: o.Username, Password: o.Password,
			CredentialsProvider: o.CredentialsProvider, CredentialsProviderContext: o.CredentialsProviderContext,
			StreamingCredentialsProvider: o.StreamingCredentialsProvider,
			Protocol:                     o.Protocol, DisableIdentity: true, MaintNotificationsConfig: o.MaintNotificationsConfig,
			PoolSize: 1, MaxRetries: -1, DialerRetries: 1, ContextTimeoutEnabled: true,
			DialTimeout: askTimeout, ReadTimeout: askTimeout, WriteTimeout: askTimeout, PoolTimeout: askTimeout,
		})
	}
	return a.clients[addr]
}

// An answer is what one node says.
type answer struct {
	asked   time.Time
	err     error
	runID   string
	replID  string
	keys    int64
	view    []line
	serving []redis.ClusterSlot
}

// ask asks one node.
func ask(ctx context.Context, c *redis.Client) answer {
	a := answer{asked: time.Now()}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	pipe := c.Pipeline()
	server := pipe.Info(ctx, "server")
	replication := pipe.Info(ctx, "replication")
	keyspace := pipe.Info(ctx, "keyspace")
	nodes := pipe.ClusterNodes(ctx)
	slots := pipe.ClusterSlots(ctx)
	if _, a.err = pipe.Exec(ctx); a.err != nil {
		return a
	}
	a.runID, a.keys = field(server.Val(), "run_id:"), keysOf(keyspace.Val())
	a.replID = field(replication.Val(), "master_replid:")
	a.serving = slots.Val()
	a.view, a.err = parseNodes(nodes.Val())
	return a
}

// field returns the value of one line of INFO.
func field(info, name string) string {
	for line := range strings.Lines(info) {
		if value, ok := strings.CutPrefix(line, name); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// keysOf returns how many keys the node holds: a cluster has only database 0.
func keysOf(keyspace string) int64 {
	count, _, _ := strings.Cut(strings.TrimPrefix(field(keyspace, "db0:"), "keys="), ",")
	n, _ := strconv.ParseInt(count, 10, 64)
	return n
}

// look asks all nodes that are known and those that the others name, at once. before may be nil.
func (a *asker) look(ctx context.Context, before *Look) *Look {
	l := &Look{From: time.Now(), Nodes: map[string]Node{}}
	if before != nil {
		l.Nodes = maps.Clone(before.Nodes)
	}
	answers := map[string]answer{}
	for fresh := a.addrs; len(fresh) > 0; {
		maps.Copy(answers, a.askAll(ctx, fresh))
		fresh = a.learn(answers)
	}
	for id, answer := range answers {
		n := l.Nodes[id]
		n.ID, n.Addr = id, a.addrs[id]
		if answer.err != nil {
			n.miss(answer.err)
		} else {
			n.said(id, answer)
			for _, line := range answer.view {
				line.claim(l)
			}
		}
		l.Nodes[id] = n
	}
	if before != nil {
		l.remember(before)
	}
	l.To = time.Now()
	return l
}

// remember keeps the owners of a look before where there is no news. If the owner does not answer, a
// view of an older epoch is none: those that answer may be cut off from the rest.
func (l *Look) remember(before *Look) {
	for slot, owner := range before.Owners {
		older := l.epochs[slot] < before.epochs[slot] && l.Nodes[owner].Missed > 0
		if l.Owners[slot] == "" || owner != "" && older {
			l.Owners[slot], l.epochs[slot] = owner, before.epochs[slot]
		}
	}
}

func (a *asker) askAll(ctx context.Context, addrs map[string]string) map[string]answer {
	var mu sync.Mutex
	var wg sync.WaitGroup
	answers := make(map[string]answer, len(addrs))
	for id, addr := range addrs {
		c := a.client(addr)
		wg.Go(func() {
			one := ask(ctx, c)
			mu.Lock()
			defer mu.Unlock()
			answers[id] = one
		})
	}
	wg.Wait()
	return answers
}

// learn takes in the addresses that the answers name, and returns those of nodes that were
// not asked yet.
func (a *asker) learn(answers map[string]answer) map[string]string {
	for _, answer := range answers {
		for _, row := range answer.serving {
			for _, n := range row.Nodes {
				if n.ID != "" && n.Addr != "" {
					a.addrs[n.ID] = n.Addr
				}
			}
		}
	}
	fresh := map[string]string{}
	for _, answer := range answers {
		for _, line := range answer.view {
			if _, asked := answers[line.id]; !asked && line.addr != "" {
				a.addrs[line.id] = cmp.Or(a.addrs[line.id], line.addr)
				fresh[line.id] = a.addrs[line.id]
			}
		}
	}
	return fresh
}

// said takes over what the node says of itself.
func (n *Node) said(id string, a answer) {
	n.Seen, n.Missed, n.RunID, n.ReplID, n.Keys = a.asked, 0, a.runID, a.replID, a.keys
	for _, line := range a.view {
		if line.id == id {
			n.Primary, n.PrimaryID, n.Epoch = line.primary, line.primaryID, line.epoch
			n.Slots, n.Importing = line.slots, line.importing
		}
	}
}

// miss takes down that the node did not answer.
func (n *Node) miss(err error) {
	n.Missed++
	if refused(err) {
		n.Missed = max(n.Missed, missesDown)
	}
}
