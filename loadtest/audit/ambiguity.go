package audit

import (
	"cmp"
	"slices"

	"github.com/slotlimit/slotlimit/keys"
)

// An Ambiguity is how many replies of one shard were lost in one way.
type Ambiguity struct {
	Shard string `json:"shard"` // the primary that owns the slots at the end, "" if none does
	Cause Cause  `json:"cause"`
	Calls int64  `json:"calls"`
}

// ambiguities adds up the lost replies by shard and cause. A call whose key is unknown is
// its user's, and a user is in one slot.
func (r *reconciliation) ambiguities() []Ambiguity {
	type group struct {
		shard string
		cause Cause
	}
	calls := map[group]int64{}
	add := func(shard int, all int64, causes Causes) {
		name := ""
		if shard >= 0 {
			name = r.Book.shards[shard].Node
		}
		for cause, n := range causes {
			calls[group{name, cause}] += n
		}
		if rest := all - causes.sum(); rest > 0 {
			calls[group{name, CauseOther}] += rest
		}
	}
	for _, w := range r.rows {
		add(w.shard, w.Ambiguous, w.Causes)
	}
	for user, n := range r.Account.Keyless {
		shard := -1
		if part, err := r.Promise.Layout.User(user); err == nil {
			shard = owner(r.Book.shards, keys.Slot(part))
		}
		add(shard, n, r.Account.KeylessCauses[user])
	}
	var all []Ambiguity
	for g, n := range calls {
		all = append(all, Ambiguity{g.shard, g.cause, n})
	}
	slices.SortFunc(all, func(a, b Ambiguity) int {
		return cmp.Or(cmp.Compare(a.Shard, b.Shard), cmp.Compare(a.Cause, b.Cause))
	})
	return all
}
