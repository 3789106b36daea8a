package clustertest_test

import (
	"os/exec"
	"strings"
	"testing"
)

// Programs use clustertest too, so it must not link package testing, and package
// cluster's own tests use it, so it must not need package cluster.
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
		case dep == module+"cluster/clustertest", dep == module+"keys":
		case strings.HasPrefix(dep, module), dep == "testing", dep == "flag", strings.HasPrefix(dep, "github.com/redis/"):
			t.Errorf("clustertest depends on %s", dep)
		}
	}
}
