package audit

import (
	"fmt"
	"math"
	"strings"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/slotlimit/slotlimit/keys"
)

// falseAlarm is the p-value under which the spread is taken for wrong. Users and
// requests are compared with it, so an honest run fails with a probability of at most
// 2 in a million.
const falseAlarm = 1e-6

// spread checks that each shard got users and requests in proportion to its slots.
//
// What is random is where a user is: the hash of the user's tag puts each user into
// shard s with probability p(s), the shard's share of the slots, independently of the
// others. So the test is on users. Requests are not independent of each other: all r(u)
// requests of a user go where the user is. A shard's requests have therefore the variance
//
//	p(s) (1 - p(s)) Q      with Q the sum of r(u)^2 over the users
//
// which is much larger than for requests that choose a shard each for itself. With
// a thousand users of a hundred requests each, a shard that is 5 % above its share is
// nothing unusual, and yet has a p-value under 1e-9 in a test that takes requests
// for independent. Users are the special case r(u) = 1, where Q is their number.
func (r *reconciliation) spread(c *Check) {
	shares := make([]float64, len(r.Book.shards))
	for i, s := range r.Book.shards {
		shares[i] = float64(s.SlotCount()) / keys.Slots
	}
	users, requests := newWeights(len(shares)), newWeights(len(shares))
	for i := 0; i < len(r.rows); {
		first, told := r.rows[i], int64(0)
		for ; i < len(r.rows) && r.rows[i].User == first.User; i++ {
			told += r.rows[i].Acknowledged
		}
		if told > 0 && first.shard >= 0 {
			users.add(first.shard, 1)
			requests.add(first.shard, float64(told))
		}
	}
	// A shard that is out of reach for a time decides less, wherever its users are.
	undecided := r.Account.Tally.Ambiguous + r.Account.Tally.Unavailable
	var parts []string
	for _, test := range []struct {
		what string
		w    *weights
	}{{"users", users}, {"requests", requests}} {
		p, bound := test.w.pValue(shares)
		parts = append(parts, fmt.Sprintf("%s %s, p = %s", test.what, test.w.parts(), showP(p)))
		if undecided == 0 && max(p, bound) < falseAlarm {
			c.fail("%s per shard %s, share of slots %s: p = %s, and at most %s whatever their number; should be at least %.0e",
				test.what, test.w.parts(), percents(shares), showP(p), showP(bound), falseAlarm)
		}
	}
	c.Detail = strings.Join(parts, "; ")
	if undecided > 0 {
		c.Detail += fmt.Sprintf("; not judged, %d requests got no decision", undecided)
	}
}

// weights are what users put on shards.
type weights struct {
	sums    []float64 // by shard
	total   float64
	squares float64 // sum of the squares of the users' weights
	largest float64 // of the users' weights
}

func newWeights(shards int) *weights { return &weights{sums: make([]float64, shards)} }

func (w *weights) add(shard int, weight float64) {
	w.sums[shard] += weight
	w.total += weight
	w.squares += weight * weight
	w.largest = max(w.largest, weight)
}

// pValue returns how probable it is that independent users are spread at least as
// unevenly, in two ways:
//
//   - p, by chi-square: the squared deviations over p(s) Q, with one degree of freedom
//     less than there are shards. Exact only in the limit of many users of which none
//     matters; with few, its tail is too thin.
//   - bound, a number that the probability is surely not above, for any number of users
//     and any weights: Bernstein's inequality for each shard, times the number of shards.
//
// The check fails if both are too small, so no honest run fails by an approximation. With few
// users it cannot fail at all: the chance that ten of them are all in one shard of three is 1 in 20,000.
func (w *weights) pValue(shares []float64) (p, bound float64) {
	statistic, tail, k := 0.0, 1.0, 0
	for s, share := range shares {
		if share == 0 {
			continue // no slot, so nothing can be there: placement sees to that
		}
		k++
		d := w.sums[s] - w.total*share
		variance := w.squares * share * (1 - share)
		if d != 0 {
			statistic += d * d / (w.squares * share)
			tail = min(tail, 2*math.Exp(-d*d/(2*(variance+w.largest*math.Abs(d)/3))))
		}
	}
	if k < 2 || w.total == 0 {
		return 1, 1
	}
	p = distuv.ChiSquared{K: float64(k - 1)}.Survival(statistic)
	return p, min(1, float64(k)*tail)
}

// parts shows the shares of the shards.
func (w *weights) parts() string {
	shares := make([]float64, len(w.sums))
	for i, sum := range w.sums {
		if w.total > 0 {
			shares[i] = sum / w.total
		}
	}
	return percents(shares)
}

func percents(shares []float64) string {
	texts := make([]string, len(shares))
	for i, s := range shares {
		texts[i] = fmt.Sprintf("%.1f", 100*s)
	}
	return strings.Join(texts, "/") + " %"
}

func showP(p float64) string {
	if p < 0.001 {
		return fmt.Sprintf("%.0e", p)
	}
	return fmt.Sprintf("%.3f", p)
}
