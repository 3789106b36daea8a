package watch_test

import (
	"strings"
	"testing"

	"github.com/slotlimit/slotlimit/cluster/servertest"
)

// The watcher tells the audit what happened, so it must not use the code that is judged.
func TestDependencies(t *testing.T) {
	const module = "github.com/slotlimit/slotlimit/"
	seen := map[string]bool{}
	for _, dep := range servertest.Dependencies(t) {
		seen[dep] = true
		if dep == "testing" || strings.HasPrefix(dep, module+"limiter") || strings.HasPrefix(dep, module+"cluster/") {
			t.Errorf("depends on %s", dep)
		}
	}
	if !seen[module+"loadtest/audit"] || !seen[module+"cluster"] {
		t.Error("go list does not name what is used for sure")
	}
}
