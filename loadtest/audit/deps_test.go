package audit_test

import (
	"os/exec"
	"strings"
	"testing"
)

// The audit judges the limiter, so it must not use the limiter's or the cluster's code, and
// being pure it has no use for a network.
func TestDependencies(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", ".").CombinedOutput()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, out)
	}
	const module = "github.com/slotlimit/slotlimit/"
	seen := 0
	for dep := range strings.FieldsSeq(string(out)) {
		seen++
		switch {
		case dep == module+"keys", dep == module+"loadtest/audit":
		case dep == "net", strings.HasPrefix(dep, "net/"), strings.HasPrefix(dep, module):
			t.Errorf("depends on %s", dep)
		case strings.Contains(strings.Split(dep, "/")[0], ".") && !strings.HasPrefix(dep, "gonum.org/"):
			t.Errorf("depends on %s", dep)
		}
	}
	if seen < 10 {
		t.Errorf("go list names only %d packages", seen)
	}
}
