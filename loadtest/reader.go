package main

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/slotlimit/slotlimit/cluster"
	"github.com/slotlimit/slotlimit/loadtest/audit"
)

const (
	scanCount   = 1000 // keys that a node looks at in one step of a scan
	slotSample  = 32   // keys per node of which the node is asked for the slot
	passTimeout = 30 * time.Second
	passPause   = 250 * time.Millisecond // before the final pass is tried again
)

// A reader reads the counters of one run from the nodes. It asks each primary
// itself and never by key, so that it sees keys where they should not be.
type reader struct {
	client *cluster.Client
	prefix string
}

// final repeats the pass until one succeeds while no slot moves, within a time that
// a failover takes. If slots move all the time, the last pass has to do.
func (r reader) final(ctx context.Context) (audit.Pass, error) {
	ctx, cancel := context.WithTimeout(ctx, passTimeout)
	defer cancel()
	var last audit.Pass
	for {
		p, err := r.pass(ctx)
		if err == nil {
			last = p
		}
		if p.Steady || !pause(ctx, passPause) {
			if last.Visits != nil {
				return last, nil
			}
			return last, err
		}
	}
}

// unused returns an error if any key begins with the prefix: a run that found the
// counters of another one would judge them, too.
func (r reader) unused(ctx context.Context) error {
	p, err := r.final(ctx)
	if err != nil {
		return err
	}
	for _, v := range p.Visits {
		if len(v.Counters) > 0 {
			return fmt.Errorf("-prefix %s: the cluster holds keys of it, such as %q: want a prefix that nobody uses", r.prefix, v.Counters[0].Key)
		}
	}
	return nil
}

// pass visits all primaries at once.
func (r reader) pass(ctx context.Context) (audit.Pass, error) {
	nodes, ok := r.client.UniversalClient.(*redis.ClusterClient)
	if !ok {
		return audit.Pass{}, fmt.Errorf("cannot visit the nodes of a %T", r.client.UniversalClient)
	}
	before, err := r.client.Topology(ctx)
	if err != nil {
		return audit.Pass{}, err
	}
	p := audit.Pass{Shards: shards(before)}
	var mu sync.Mutex
	err = nodes.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error {
		v, err := r.visit(ctx, node, before)
		if err != nil {
			return fmt.Errorf("%s: %w", node.Options().Addr, err)
		}
		mu.Lock()
		defer mu.Unlock()
		p.Visits = append(p.Visits, v)
		return nil
	})
	if err != nil {
		return audit.Pass{}, err
	}
	if err := complete(p); err != nil {
		return audit.Pass{}, err
	}
	p.To = time.Now()
	after, err := r.client.Topology(ctx)
	p.Steady = err == nil && reflect.DeepEqual(p.Shards, shards(after))
	return p, err
}

// complete returns an error unless every shard was visited: a primary may have changed
// between the look at the topology and the visits.
func complete(p audit.Pass) error {
	for _, s := range p.Shards {
		if !slices.ContainsFunc(p.Visits, func(v audit.Visit) bool { return v.Node == s.Node }) {
			return fmt.Errorf("%s is a primary, and could not be visited", s.Node)
		}
	}
	return nil
}

// visit scans one primary. The node is named as the topology names it, which may be
// another address than that under which this process reaches it.
func (r reader) visit(ctx context.Context, node *redis.Client, t cluster.Topology) (audit.Visit, error) {
	v := audit.Visit{Node: node.Options().Addr, Slots: map[string]int{}}
	id, err := node.ClusterMyID(ctx).Result()
	if err != nil {
		return v, err
	}
	for _, s := range t.Shards {
		if s.Primary.ID == id {
			v.Node = s.Primary.Addr
		}
	}
	if v.From, err = clock(ctx, node); err != nil {
		return v, err
	}
	seen := map[string]bool{} // a scan may name a key twice
	for cursor := uint64(0); ; {
		var page []string
		if page, cursor, err = node.Scan(ctx, cursor, globEscape.Replace(r.prefix)+":*", scanCount).Result(); err != nil {
			return v, err
		}
		page = slices.DeleteFunc(page, func(key string) bool {
			again := seen[key]
			seen[key] = true
			return again
		})
		if err := read(ctx, node, page, &v); err != nil {
			return v, err
		}
		if cursor == 0 {
			break
		}
	}
	v.To, err = clock(ctx, node)
	return v, err
}

var globEscape = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`)

func clock(ctx context.Context, node *redis.Client) (int64, error) {
	now, err := node.Time(ctx).Result()
	return now.UnixMilli(), err
}

// read reads a page of keys, and the slots of some of them.
func read(ctx context.Context, node *redis.Client, page []string, v *audit.Visit) error {
	found, err := counters(ctx, node, page, false)
	if err != nil {
		return err
	}
	var elsewhere []string
	for _, c := range found {
		if strings.HasPrefix(c.Unread, "MOVED ") {
			elsewhere = append(elsewhere, c.Key)
		} else {
			v.Counters = append(v.Counters, c)
		}
	}
	// Of a slot that is just moving here, a node gives the keys that have arrived to those who ask so.
	found, err = counters(ctx, node, elsewhere, true)
	if err != nil {
		return err
	}
	v.Counters = append(v.Counters, found...)
	for _, key := range page[:min(len(page), max(0, slotSample-len(v.Slots)))] {
		slot, err := node.ClusterKeySlot(ctx, key).Result()
		if err != nil {
			return err
		}
		v.Slots[key] = int(slot)
	}
	return nil
}

// counters reads keys of a node in one pipeline, after ASKING if they are arriving.
func counters(ctx context.Context, node *redis.Client, page []string, asking bool) ([]audit.Counter, error) {
	if len(page) == 0 {
		return nil, nil
	}
	pipe := node.Pipeline()
	ask := func() {
		if asking {
			pipe.Do(ctx, "asking") // holds for one command
		}
	}
	values := make([]*redis.StringCmd, len(page))
	expiries := make([]*redis.Cmd, len(page))
	for i, key := range page {
		ask()
		values[i] = pipe.Get(ctx, key)
		ask()
		expiries[i] = pipe.Do(ctx, "pexpiretime", key)
	}
	_, _ = pipe.Exec(ctx) // every reply has an error of its own
	var found []audit.Counter
	for i, key := range page {
		c, ok, err := counter(key, values[i], expiries[i])
		if err != nil {
			return nil, err
		}
		c.Arriving = asking && c.Unread == ""
		if ok {
			found = append(found, c)
		}
	}
	return found, nil
}

// counter makes one of two replies. It reports false for a key that has expired since the scan.
func counter(key string, value *redis.StringCmd, expiry *redis.Cmd) (audit.Counter, bool, error) {
	c := audit.Counter{Key: key}
	text, err := value.Result()
	if errors.Is(err, redis.Nil) {
		return c, false, nil
	}
	if final(err) {
		c.Unread = err.Error()
		return c, true, nil
	}
	if err != nil {
		return c, false, err
	}
	if c.Value, err = strconv.ParseInt(text, 10, 64); err != nil {
		c.Unread = fmt.Sprintf("it holds %.40q, not an integer", text)
	}
	at, err := expiry.Int64()
	if final(err) {
		c.Unread = err.Error() // its slot left the node between the two commands
		return c, true, nil
	}
	c.Expires = max(at, 0)  // -1: it never expires
	return c, at != -2, err // -2: it expired between the two
}

// final reports error replies that say something of the key: that the node does not
// serve it, or that it is no counter. Others pass (CLUSTERDOWN, LOADING, ASK), and then
// the counters are read again.
func final(err error) bool {
	return redis.HasErrorPrefix(err, "MOVED ") || redis.HasErrorPrefix(err, "WRONGTYPE ")
}

// shards is the part of the topology that the audit needs.
func shards(t cluster.Topology) []audit.Shard {
	var all []audit.Shard
	for _, s := range t.Shards {
		one := audit.Shard{Node: s.Primary.Addr}
		for _, r := range s.Slots {
			one.Slots = append(one.Slots, audit.SlotRange(r))
		}
		all = append(all, one)
	}
	return all
}

// pause waits, and reports false if ctx ends before.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
