package watch_test

import (
	"os/exec"
	"strings"
	"testing"
)

// The watcher tells the audit what happened, so it must not use the code that is judged.
func TestDependencies(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", ".").CombinedOutput()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, out)
	}
	const module = "github.com/slotlimit/slotlimit/"
	seen := map[string]bool{}
	for dep := range strings.FieldsSeq(string(out)) {
		seen[dep] = true
		if dep == "testing" || strings.HasPrefix(dep, module+"limiter") || strings.HasPrefix(dep, module+"cluster/") {
			t.Errorf("depends on %s", dep)
		}
	}
	if !seen[module+"loadtest/audit"] || !seen[module+"cluster"] {
		t.Error("go list does not name what is used for sure")
	}
}
