package limiter_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/slotlimit/slotlimit/cluster"
	"github.com/slotlimit/slotlimit/cluster/servertest"
	"github.com/slotlimit/slotlimit/limiter"
)

// leastACL is the line of the README that says what an ACL user needs.
func leastACL(t *testing.T) []any {
	t.Helper()
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(readme)) {
		if strings.HasPrefix(line, "    +evalsha ") {
			var rules []any
			for _, rule := range strings.Fields(line) {
				rules = append(rules, rule)
			}
			return rules
		}
	}
	t.Fatal("the README says nothing of ACL rules")
	return nil
}

// The ACL rules that the README names are enough, and no one of them is too many.
func TestLeastACL(t *testing.T) {
	c := servertest.Start(t)
	rules := leastACL(t)
	as := func(user string, rules []any) error {
		for _, node := range c.Nodes() {
			args := append([]any{"ACL", "SETUSER", user, "reset", "on", ">secret"}, rules...)
			if err := node.Client.Do(t.Context(), args...).Err(); err != nil {
				t.Fatal(err)
			}
			node.Client.ScriptFlush(t.Context())
		}
		client, err := cluster.Open(t.Context(), cluster.Config{Addrs: c.Addrs(), Username: user, Password: "secret"})
		if err != nil {
			return err
		}
		defer client.Close()
		lim, err := limiter.New(client, limiter.PerDay(100), limiter.WithGrace(limiter.DefaultGrace))
		if err != nil {
			t.Fatal(err)
		}
		if err := client.Preload(t.Context(), limiter.Scripts()...); err != nil {
			return err
		}
		for range 2 {
			if _, err := lim.Allow(t.Context(), user); err != nil {
				return err
			}
		}
		if _, err := lim.Peek(t.Context(), user); err != nil {
			return err
		}
		for _, node := range c.Nodes() {
			node.Client.ScriptFlush(t.Context())
		}
		return lim.Reset(t.Context(), user)
	}
	if err := as("least", rules); err != nil {
		t.Fatalf("%v is not enough: %v", rules, err)
	}
	for i, without := range rules {
		err := as(fmt.Sprint("without-", i), append(append([]any{}, rules[:i]...), rules[i+1:]...))
		if err == nil {
			t.Errorf("%s is in the README, and not needed", without)
		} else if strings.HasPrefix(without.(string), "~") && !errors.Is(err, limiter.ErrUnavailable) {
			t.Errorf("without %s: %v, want ErrUnavailable", without, err)
		}
	}
}
