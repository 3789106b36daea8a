package audit

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"
)

var thirds = []float64{5461.0 / 16384, 5462.0 / 16384, 5461.0 / 16384}

// deal puts users of these weights on shards at random.
func deal(random *rand.Rand, shares, users []float64) *weights {
	w := newWeights(len(shares))
	for _, weight := range users {
		x, shard := random.Float64(), 0
		for x >= shares[shard] && shard < len(shares)-1 {
			x -= shares[shard]
			shard++
		}
		w.add(shard, weight)
	}
	return w
}

// A p-value is one if it is under x with a probability of x. Held for users of equal
// weight, for requests of which few users make most, and for shards of unequal size.
func TestPValueIsUniform(t *testing.T) {
	equal, heavy := make([]float64, 1000), make([]float64, 1000)
	for i := range equal {
		equal[i], heavy[i] = 1, 1000/math.Sqrt(float64(i+1))
	}
	for _, test := range []struct {
		name          string
		shares, users []float64
	}{
		{"users", thirds, equal},
		{"requests of unequal users", thirds, heavy},
		{"unequal shards", []float64{0.7, 0.2, 0.05, 0.05}, equal},
	} {
		random := rand.New(rand.NewPCG(1, 2))
		const runs = 1500
		under := map[float64]int{0.5: 0, 0.1: 0, 0.01: 0}
		for range runs {
			p, _ := deal(random, test.shares, test.users).pValue(test.shares)
			for x := range under {
				if p < x {
					under[x]++
				}
			}
		}
		for x, n := range under {
			// Five standard deviations of the count, and a tenth for the approximation.
			if off := math.Abs(float64(n) - runs*x); off > 5*math.Sqrt(runs*x*(1-x))+runs*x/10 {
				t.Errorf("%s: %d of %d p-values are under %v", test.name, n, runs, x)
			}
		}
	}
}

// Requests are not independent of each other: a test that takes them for that calls an
// honest run wrong. This is the reason for the weights.
func TestRequestsClusterByUser(t *testing.T) {
	users := make([]float64, 1000)
	for i := range users {
		users[i] = 300
	}
	w := deal(rand.New(rand.NewPCG(3, 4)), thirds, users)
	naive := 0.0
	for s, share := range thirds {
		expected := w.total * share
		naive += (w.sums[s] - expected) * (w.sums[s] - expected) / expected
	}
	if p := (distuv.ChiSquared{K: 2}).Survival(naive); p > falseAlarm {
		t.Fatalf("the naive test has p = %v here, so this proves nothing", p)
	}
	if p, _ := w.pValue(thirds); p < 0.001 {
		t.Errorf("an honest run has p = %v", p)
	}
}

// The bound is never below the probability itself, which is known where all users
// are on one of two shards: 2 / 2^n.
func TestBoundHolds(t *testing.T) {
	halves := []float64{0.5, 0.5}
	for n := 1; n <= 200; n++ {
		w := newWeights(2)
		for range n {
			w.add(0, 1)
		}
		p, bound := w.pValue(halves)
		if exact := 2 / math.Pow(2, float64(n)); bound < exact {
			t.Errorf("%d users: bound %v, probability %v", n, bound, exact)
		}
		// The reason for the bound: chi-square alone is too small, and no bound.
		if n == 20 && p > 2/math.Pow(2, 20)*5 {
			t.Errorf("20 users: chi-square has p = %v; is it still too small?", p)
		}
	}
}

func TestSpreadFailsWhenUnfair(t *testing.T) {
	for _, test := range []struct {
		name string
		put  [3]float64 // users per shard
		ok   bool
	}{
		{"fair", [3]float64{330, 340, 330}, true},
		{"unlucky", [3]float64{370, 330, 300}, true},
		{"no hash: all on one", [3]float64{1000, 0, 0}, false},
		{"a shard without users", [3]float64{500, 500, 0}, false},
		{"a tenth too many", [3]float64{430, 285, 285}, false},
		{"one user", [3]float64{1, 0, 0}, true},
		{"ten users on one", [3]float64{10, 0, 0}, true},
		{"too few for chi-square", [3]float64{14, 0, 0}, true},
		{"nobody", [3]float64{}, true},
	} {
		r := &reconciliation{History: History{Book: &Book{shards: []Shard{
			{Node: "a", Slots: []SlotRange{{0, 5460}}},
			{Node: "b", Slots: []SlotRange{{5461, 10922}}},
			{Node: "c", Slots: []SlotRange{{10923, 16383}}},
		}}}}
		for shard, users := range test.put {
			for u := range int(users) {
				r.rows = append(r.rows, row{Told: Told{User: fmt.Sprint(shard, u), Acknowledged: 10}, shard: shard})
			}
		}
		c := Check{OK: true}
		r.spread(&c)
		if c.OK != test.ok {
			t.Errorf("%s: ok is %v: %s %v", test.name, c.OK, c.Detail, c.Offenders)
		}
		if !c.OK && !strings.HasPrefix(c.Offenders[0], "users per shard ") {
			t.Errorf("%s: %v", test.name, c.Offenders)
		}
	}
}
