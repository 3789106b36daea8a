package main

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"

	"github.com/slotlimit/slotlimit/loadtest/loadgen"
)

// kinds are the kinds of workloads, in the order of the tables.
var kinds = []string{"hot", "uniform", "zipf"}

// zipfExponent is the s in the probability of the user of rank k, which is in proportion to 1/(k+1)^s.
const zipfExponent = 1.1

// A workload says which user each attempt is of. It is a value.
type workload struct {
	kind  string
	users int // that there are, at least 1
}

func (w workload) String() string {
	switch w.kind {
	case "hot":
		return "one hot user"
	case "zipf":
		return fmt.Sprintf("%d users, zipf %v", w.users, zipfExponent)
	}
	return fmt.Sprintf("%d users, uniform", w.users)
}

// A source draws users, by their index from 0 to one below the workload's users. It is for
// one goroutine.
type source interface{ next() int }

// source returns the source of one goroutine: the same numbers give the same users in the
// same order, so that every limiter is asked for the same ones, and so that the ledger can
// draw them again.
func (w workload) source(seed uint64, goroutine int) source {
	if w.kind == "hot" {
		return hot{}
	}
	random := rand.New(rand.NewPCG(seed, uint64(goroutine)))
	if w.kind == "zipf" {
		return zipf{rand.NewZipf(random, zipfExponent, 1, uint64(w.users-1))}
	}
	return uniform{random, w.users}
}

type hot struct{}

func (hot) next() int { return 0 }

type uniform struct {
	random *rand.Rand
	users  int
}

func (u uniform) next() int { return u.random.IntN(u.users) }

type zipf struct{ zipf *rand.Zipf }

func (z zipf) next() int { return int(z.zipf.Uint64()) }

// workloads returns those of the options: a hot user is one whatever the number of users.
func (o options) loads() []workload {
	var all []workload
	for _, kind := range kinds {
		for _, w := range o.workloads {
			if w != kind {
				continue
			}
			if kind == "hot" {
				all = append(all, workload{kind, 1})
				continue
			}
			for _, n := range o.users {
				all = append(all, workload{kind, n})
			}
		}
	}
	return all
}

// userNames makes the names of users, all of which end in the run's own tag, so that their
// keys are no one else's.
func userNames(n int, tag string) []string {
	// A seed of the run's own: the users of two runs are not in the same slots.
	s := loadgen.Schedule{Seed: binary.BigEndian.Uint64([]byte(tag)[:8]), Users: int64(n)}
	all := make([]string, n)
	for i := range all {
		all[i] = s.Name(int64(i)) + "-" + tag
	}
	return all
}
