package loadgen_test

import (
	"testing"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/slotlimit/slotlimit/keys"
	"github.com/slotlimit/slotlimit/loadtest/loadgen"
)

// The users of a seed are fixed for ever: a failure that someone reports with a seed
// has to be the same one on another machine and in a later version.
func TestScheduleIsReproducible(t *testing.T) {
	s := loadgen.Schedule{Seed: 1, Users: 200}
	for request, want := range map[int64]string{0: "u-8c9cf311", 1: "u-bb7a4bc0", 29999: "u-a1cc5666"} {
		if got := s.User(request); got != want {
			t.Errorf("request %d is for %s, was for %s", request, got, want)
		}
	}
	other := loadgen.Schedule{Seed: 2, Users: 200}
	if s.Name(0) == other.Name(0) {
		t.Error("two seeds have the same names")
	}
}

func TestNamesAreDistinct(t *testing.T) {
	const users = 300000
	s := loadgen.Schedule{Seed: 7, Users: users}
	seen := make(map[string]bool, users)
	for i := range int64(users) {
		name := s.Name(i)
		if seen[name] || len(name) != 10 {
			t.Fatalf("user %d is named %q, known: %v", i, name, seen[name])
		}
		seen[name] = true
	}
}

// Requests are spread evenly over the users, and the names over the slots: both are what the
// audit's spread check takes for granted.
func TestScheduleIsUniform(t *testing.T) {
	const users, requests = 1000, 1000000
	s := loadgen.Schedule{Seed: 1, Users: users}
	at := map[string]int{}
	for i := range int64(users) {
		at[s.Name(i)] = int(i)
	}
	counts := make([]float64, users)
	for i := range int64(requests) {
		user, ok := at[s.User(i)]
		if !ok {
			t.Fatalf("request %d is for %s, who is no user", i, s.User(i))
		}
		counts[user]++
	}
	uniform(t, "requests per user", counts)

	slots := make([]float64, keys.Slots)
	for i := range int64(1 << 20) {
		slots[keys.Slot("lt:{"+s.Name(i)+"}:1")]++
	}
	uniform(t, "users per slot", slots)
}

// uniform fails if counts are less even than chance makes them, or more even: a p-value is as
// seldom above 0.9999 as under 0.0001.
func uniform(t *testing.T, what string, counts []float64) {
	t.Helper()
	total, statistic := 0.0, 0.0
	for _, n := range counts {
		total += n
	}
	expected := total / float64(len(counts))
	for _, n := range counts {
		statistic += (n - expected) * (n - expected) / expected
	}
	p := distuv.ChiSquared{K: float64(len(counts) - 1)}.Survival(statistic)
	if p < 1e-4 || p > 1-1e-4 {
		t.Errorf("%s: p = %v", what, p)
	}
}

func TestScheduleValidate(t *testing.T) {
	for users, ok := range map[int64]bool{-1: false, 0: false, 1: true, loadgen.MaxUsers: true, loadgen.MaxUsers + 1: false} {
		if err := (loadgen.Schedule{Users: users}).Validate(); (err == nil) != ok {
			t.Errorf("%d users: %v", users, err)
		}
	}
}
