package cluster_test

import (
	"os/exec"
	"strings"
	"testing"
)

// cluster is below limiter, and below the tests' clusters, which a service must not
// compile.
func TestDependencies(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	deps := strings.Fields(string(out))
	if len(deps) < 20 {
		t.Fatalf("go list knows of only %d packages", len(deps))
	}
	const module = "github.com/slotlimit/slotlimit/"
	for _, dep := range deps {
		switch {
		case dep == module+"cluster", dep == module+"keys":
		case strings.HasPrefix(dep, module):
			t.Errorf("cluster depends on %s, which is above it", dep)
		case dep == "testing", dep == "flag", strings.HasPrefix(dep, "github.com/alicebob/"):
			t.Errorf("cluster depends on %s, which belongs to tests and programs", dep)
		}
	}
}
