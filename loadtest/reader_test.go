package main

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/slotlimit/slotlimit/keys"
)

// A slot is on its way while the counters are read: some keys have arrived, and the
// owner is still the old one. If the new one then forgets the move, they are astray.
func TestCountersOnTheMove(t *testing.T) {
	for _, forgotten := range []bool{false, true} {
		var stdout, stderr bytes.Buffer
		p := newProgram(&stdout, &stderr)
		p.limiter = func(s setup) (underTest, error) {
			lim, err := newLimiter(s)
			calls := 0
			return between{lim, func() {
				if calls++; calls == 20 { // the last one
					moveAway(t, s, forgotten)
				}
			}}, err
		}
		status := p.run(t.Context(), []string{"-users", "1", "-requests", "20", "-workers", "1", "-limit", "5/366d"})
		want, line := exitOK, "PROVEN"
		if forgotten {
			want, line = exitFailed, "\n  placement: user \"u-"
		}
		if status != want || !strings.Contains(stdout.String(), line) {
			t.Errorf("forgotten %v: exit status %d, want %d and %q\n%s%s", forgotten, status, want, line, &stderr, &stdout)
		}
	}
}

// moveAway moves the one counter that there is to another node, and leaves the move
// unfinished, or forgotten by the node that it went to.
func moveAway(t *testing.T, s setup, forgotten bool) {
	c := s.target.inner
	primaries := c.Primaries()
	at := slices.IndexFunc(primaries, func(node int) bool { return len(c.Keys(node)) > 0 })
	if at < 0 {
		t.Error("no counter to move")
		return
	}
	key := c.Keys(primaries[at])[0]
	to := primaries[(at+1)%len(primaries)]
	slot := keys.Slot(key)
	if err := c.BeginMove(slot, to); err != nil {
		t.Error(err)
	}
	if err := c.MoveKey(key); err != nil {
		t.Error(err)
	}
	if !forgotten {
		return
	}
	client := redis.NewClient(&redis.Options{Addr: c.Addr(to)})
	defer client.Close()
	if err := client.Do(t.Context(), "cluster", "setslot", strconv.Itoa(slot), "stable").Err(); err != nil {
		t.Error(err)
	}
}

// A prefix is not a pattern, whatever bytes it has.
func TestPrefixIsNoPattern(t *testing.T) {
	status, stdout, stderr := loadtest(t, append(small, "-prefix", `a*b?[c]\d`)...)
	if status != exitOK {
		t.Errorf("exit status %d: %s%s", status, stderr, stdout)
	}
}
