package main

import (
	"math"
	"reflect"
	"strings"
	"testing"
)

func drawn(w workload, seed uint64, goroutine, n int) []int {
	s := w.source(seed, goroutine)
	users := make([]int, n)
	for i := range users {
		users[i] = s.next()
	}
	return users
}

// The ledger draws again what a goroutine drew.
func TestSourceRepeats(t *testing.T) {
	for _, kind := range []string{"uniform", "zipf"} {
		w := workload{kind, 1000}
		first := drawn(w, 7, 3, 500)
		if !reflect.DeepEqual(first, drawn(w, 7, 3, 500)) {
			t.Errorf("%v: the same seed and goroutine draw other users", w)
		}
		if reflect.DeepEqual(first, drawn(w, 7, 4, 500)) || reflect.DeepEqual(first, drawn(w, 8, 3, 500)) {
			t.Errorf("%v: another goroutine or seed draws the same users", w)
		}
	}
}

func TestHot(t *testing.T) {
	for _, user := range drawn(workload{"hot", 1}, 1, 2, 100) {
		if user != 0 {
			t.Fatalf("user %d", user)
		}
	}
}

// Every user is drawn, and each about as often as any other: 100 times, 6 standard deviations
// at most off.
func TestUniform(t *testing.T) {
	const users, each = 1000, 100
	counts := make([]int, users)
	for goroutine := range 10 {
		for _, user := range drawn(workload{"uniform", users}, 1, goroutine, users*each/10) {
			counts[user]++
		}
	}
	for user, n := range counts {
		if math.Abs(float64(n-each)) > 6*math.Sqrt(each) {
			t.Errorf("user %d was drawn %d times, want about %d", user, n, each)
		}
	}
}

// The users of the first ranks are drawn as often as the formula says: in proportion to
// 1/(rank+1)^1.1; and nobody outside of the users is.
func TestZipf(t *testing.T) {
	const users, draws = 10000, 200000
	counts := make([]float64, users)
	for _, user := range drawn(workload{"zipf", users}, 1, 0, draws) {
		counts[user]++ // panics outside
	}
	sum := 0.0
	for rank := range users {
		sum += math.Pow(float64(rank+1), -zipfExponent)
	}
	for rank := range 20 {
		want := draws * math.Pow(float64(rank+1), -zipfExponent) / sum
		if math.Abs(counts[rank]-want) > 6*math.Sqrt(want) {
			t.Errorf("rank %d was drawn %.0f times, want about %.0f", rank, counts[rank], want)
		}
	}
}

func TestUserNames(t *testing.T) {
	const n = 20000
	all := userNames(n, "0123abcd")
	seen := map[string]bool{}
	for _, name := range all {
		if seen[name] || !strings.HasSuffix(name, "-0123abcd") {
			t.Fatalf("%q is there twice, or lacks the tag", name)
		}
		seen[name] = true
	}
	if other := userNames(1, "0123abce"); other[0][:8] == all[0][:8] {
		t.Errorf("two runs begin with %q and %q", all[0], other[0])
	}
}
