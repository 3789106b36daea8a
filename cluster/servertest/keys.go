package servertest

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// CheckKeys is the package's [CheckKeys] on the nodes of the cluster.
func (c *Cluster) CheckKeys(tb testing.TB, prefix string) int {
	tb.Helper()
	return CheckKeys(tb, c.clients(), prefix)
}

// CheckKeys is the invariant that holds after every test: it reads the names of all keys with
// the prefix on every primary, and fails the test, without ending it, for each
// that has no TTL, or sits on a primary that does not own the key's slot. It waits
// for the cluster to be [Whole] first. The clients are to each of its nodes. It returns how
// many keys it saw, for a test that knows how many there should be: a check of no keys proves nothing.
func CheckKeys(tb testing.TB, clients []*redis.Client, prefix string) int {
	tb.Helper()
	// Not the test's own context, which has ended by the time of its cleanups.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(tb.Context()), startTimeout)
	defer cancel()
	if err := WaitWhole(ctx, clients); err != nil {
		tb.Errorf("check the keys of %q: %v", prefix, err)
		return 0
	}
	seen := 0
	var faults []string
	for _, c := range clients {
		n, found, err := checkNode(ctx, c, prefix)
		if err != nil {
			tb.Errorf("check the keys of %q on %s: %v", prefix, c.Options().Addr, err)
		}
		seen += n
		faults = append(faults, found...)
	}
	const shown = 10
	for _, f := range faults[:min(shown, len(faults))] {
		tb.Error(f)
	}
	if more := len(faults) - shown; more > 0 {
		tb.Errorf("and %d more keys like these", more)
	}
	return seen
}

// checkNode checks the keys of one node, if it is a primary: how many there were, and what is wrong.
func checkNode(ctx context.Context, c *redis.Client, prefix string) (seen int, faults []string, err error) {
	v, err := look(ctx, c)
	if err != nil || !v.primary {
		return 0, nil, err
	}
	known := map[string]bool{} // a scan may name a key twice
	for cursor := uint64(0); ; {
		var page []string
		page, cursor, err = c.Scan(ctx, cursor, globEscape.Replace(prefix)+"*", 1000).Result()
		if err != nil {
			return seen, faults, err
		}
		var keys []string
		for _, key := range page {
			if !known[key] {
				known[key] = true
				keys = append(keys, key)
			}
		}
		found, err := checkPage(ctx, c, v, keys)
		if err != nil {
			return seen, faults, err
		}
		seen += len(keys)
		faults = append(faults, found...)
		if cursor == 0 {
			return seen, faults, nil
		}
	}
}

// checkPage says what is wrong with some keys that the node of the client holds. The
// slot of a key is asked from the server, so that no code of this project checks itself.
func checkPage(ctx context.Context, c *redis.Client, v view, keys []string) (faults []string, err error) {
	if len(keys) == 0 {
		return nil, nil
	}
	pipe := c.Pipeline()
	keySlots := make([]*redis.IntCmd, len(keys))
	ttls := make([]*redis.DurationCmd, len(keys))
	for i, key := range keys {
		keySlots[i] = pipe.ClusterKeySlot(ctx, key)
		ttls[i] = pipe.PTTL(ctx, key)
	}
	_, _ = pipe.Exec(ctx) // each reply has its own error
	for i, key := range keys {
		slot, err := keySlots[i].Result()
		if err != nil {
			return faults, err
		}
		if owner := v.owner(int(slot)); owner != v.id {
			// Its TTL is not to be had either: the node answers MOVED.
			faults = append(faults, fmt.Sprintf("%q of slot %d is on %s (%s), but the slot is on %s", key, slot, v.addr, v.id, owner))
			continue
		}
		ttl, err := ttls[i].Result()
		if err != nil {
			return faults, err
		}
		if ttl == noTTL {
			faults = append(faults, fmt.Sprintf("%q on %s has no TTL", key, v.addr))
		}
	}
	return faults, nil
}

// noTTL is how go-redis gives PTTL's -1; its -2 means that the key has expired since.
const noTTL = time.Duration(-1)

var globEscape = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`)
