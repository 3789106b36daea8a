package audit_test

import (
	"fmt"
	"maps"
	"reflect"
	"sync"
	"testing"

	"github.com/slotlimit/slotlimit/loadtest/audit"
)

func TestLedgerAddsUpFromManyWorkers(t *testing.T) {
	l := audit.NewLedger()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := range 1000 {
				user := fmt.Sprint("u", i%10)
				key := "lt:{" + user + "}:7"
				l.Acknowledged(user, 7, key, i%2 == 0)
				l.Ambiguous(user, key)
				l.Ambiguous(user, "")
				l.Unavailable()
			}
		})
	}
	wg.Wait()
	a := l.Account()
	if want := (audit.Tally{Acknowledged: 8000, Allowed: 4000, Ambiguous: 16000, Unavailable: 8000}); a.Tally != want || l.Tally() != want {
		t.Errorf("tally %+v, want %+v", a.Tally, want)
	}
	if len(a.Told) != 10 || len(a.Keyless) != 10 || a.Clashed != 0 {
		t.Fatalf("%d keys, %d users without a key, %d clashes; want 10, 10, 0", len(a.Told), len(a.Keyless), a.Clashed)
	}
	for _, got := range a.Told {
		want := audit.Told{
			Key: "lt:{" + got.User + "}:7", User: got.User, Window: 7, Known: true,
			Acknowledged: 800, Allowed: got.Allowed, Ambiguous: 800,
			First: got.First, Causes: audit.Causes{audit.CauseOther: 800},
		}
		if !reflect.DeepEqual(got, want) || got.First.IsZero() || got.Allowed != 0 && got.Allowed != 800 {
			t.Errorf("told %+v", got)
		}
	}
	if want := map[string]int64{"u3": 800}; a.Keyless["u3"] != want["u3"] {
		t.Errorf("without a key: %v", maps.Collect(maps.All(a.Keyless)))
	}
}

func TestLedgerSeesClashes(t *testing.T) {
	l := audit.NewLedger()
	l.Acknowledged("a", 1, "k", true)
	l.Acknowledged("b", 1, "k", true)
	l.Acknowledged("a", 2, "k", true)
	a := l.Account()
	if a.Clashed != 2 || len(a.Clashes) != 2 {
		t.Fatalf("clashes %+v, counted %d", a.Clashes, a.Clashed)
	}
	if c := a.Clashes[0]; c.User != "a" || c.OtherUser != "b" {
		t.Errorf("clash of users: %+v", c)
	}
	if c := a.Clashes[1]; c.Window != 1 || c.OtherWindow != 2 {
		t.Errorf("clash of windows: %+v", c)
	}
}

// A key that was lost first has its window from the decision that comes later.
func TestLedgerLearnsTheWindow(t *testing.T) {
	l := audit.NewLedger()
	l.Ambiguous("a", "k")
	if got := l.Account().Told[0]; got.Known {
		t.Errorf("window known before any decision: %+v", got)
	}
	l.Acknowledged("a", 5, "k", false)
	if got := l.Account().Told[0]; !got.Known || got.Window != 5 || got.Denied() != 1 {
		t.Errorf("after a decision: %+v", got)
	}
}
