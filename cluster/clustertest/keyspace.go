package clustertest

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/slotlimit/slotlimit/keys"
)

// An Entry is one key as a node holds it.
type Entry struct {
	Key      string
	Slot     int
	Type     string            // as TYPE answers: string, hash, list, set, zset, stream
	Value    string            // of a string
	Fields   map[string]string // of a hash
	Members  []string          // of a list in its order, of a set sorted
	Scores   map[string]float64
	ExpireAt time.Time     // by every node's clock; zero for a key without expiry
	TTL      time.Duration // by the clock of the node that was asked; 0 for a key without expiry
}

// Keys returns the keys of a node, sorted, without those that have expired by the
// node's own clock. A replica has the keys of its primary. A dead or hung node is
// asked all the same.
func (c *Cluster) Keys(node int) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.nodes[node].keys()
}

func (n *node) keys() []string {
	now := n.now()
	return slices.DeleteFunc(n.shard.db.Keys(), func(key string) bool { return n.shard.expired(key, now) })
}

// Dump returns what a node holds, sorted by key, as [Cluster.Keys] does.
func (c *Cluster) Dump(node int) []Entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.nodes[node]
	now := n.now()
	entries := []Entry{}
	for _, key := range n.keys() {
		entries = append(entries, n.shard.entry(key, now))
	}
	return entries
}

func (s *shard) entry(key string, now time.Time) Entry {
	e := Entry{Key: key, Slot: keys.Slot(key), Type: s.db.Type(key)}
	// The type was just asked for, under the lock, so none of these can fail.
	switch e.Type {
	case "string":
		e.Value, _ = s.db.Get(key)
	case "hash":
		e.Fields = map[string]string{}
		fields, _ := s.db.HKeys(key)
		for _, f := range fields {
			e.Fields[f] = s.db.HGet(key, f)
		}
	case "list":
		e.Members, _ = s.db.List(key)
	case "set":
		e.Members, _ = s.db.Members(key)
	case "zset":
		e.Scores, _ = s.db.SortedSet(key)
	}
	if at := s.expiry(key); at != 0 {
		e.ExpireAt = time.UnixMilli(at).UTC()
		e.TTL = time.Duration(at-now.UnixMilli()) * time.Millisecond
	}
	return e
}

// What Check found. Each is wrapped with the key and the node.
var (
	ErrMisplaced = errors.New("clustertest: key on a node that does not own its slot")
	ErrNoExpiry  = errors.New("clustertest: key without expiry")
)

// Check looks for keys that a rate limiter must not leave behind: those on a
// primary that does not own their slot, save for a slot that is being moved there,
// and those without expiry. It returns one error for each, joined, or nil. Call it
// at the end of every test.
func (c *Cluster) Check() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var found []error
	for s, index := range c.primary {
		n := c.nodes[index]
		for _, key := range n.keys() {
			slot := keys.Slot(key)
			if _, arriving := n.importing[slot]; int(c.owner[slot]) != s && !arriving {
				found = append(found, fmt.Errorf("%w: %q, slot %d, node %d", ErrMisplaced, key, slot, index))
			}
			if n.shard.expiry(key) == 0 {
				found = append(found, fmt.Errorf("%w: %q, node %d", ErrNoExpiry, key, index))
			}
		}
	}
	return errors.Join(found...)
}

// Flush deletes all keys of all nodes, expired or not. Slots, scripts and clocks
// stay as they are.
func (c *Cluster) Flush() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.shards {
		s.touchAll()
		s.db.FlushDB()
	}
}
