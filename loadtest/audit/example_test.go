package audit_test

import (
	"fmt"
	"time"

	"github.com/slotlimit/slotlimit/keys"
	"github.com/slotlimit/slotlimit/loadtest/audit"
)

// Three calls for alice were acknowledged, but her counter says four: something was
// counted twice.
func ExampleReconcile() {
	const key, minute = "rl:{alice}:29139840", 60000
	ledger := audit.NewLedger()
	for range 3 {
		ledger.Acknowledged("alice", 29139840, key, true)
	}

	var book audit.Book
	book.Add(audit.Pass{
		Steady: true,
		Shards: []audit.Shard{{Node: "127.0.0.1:7001", Slots: []audit.SlotRange{{First: 0, Last: keys.Slots - 1}}}},
		Visits: []audit.Visit{{
			Node: "127.0.0.1:7001", From: 29139841 * minute, To: 29139841 * minute,
			Counters: []audit.Counter{{Key: key, Value: 4, Expires: 29139841*minute + 1000}},
		}},
	}, true)

	verdict := audit.Reconcile(audit.History{
		Promise: audit.Promise{Rate: 100, Period: time.Minute, Grace: time.Second},
		Sent:    3,
		Account: ledger.Account(),
		Book:    &book,
	})
	for _, check := range verdict.Checks {
		fmt.Println(check.Name, check.OK)
		for _, line := range check.Offenders {
			fmt.Println("  " + line)
		}
	}
	// Output:
	// counters false
	//   user "alice" window 29139840: stored 4, told 3
	// limit true
	// placement true
	// spread true
	// expiry true
}
