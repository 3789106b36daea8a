package audit_test

import (
	"strings"
	"testing"

	"github.com/slotlimit/slotlimit/cluster/servertest"
)

// The audit judges the limiter, so it must not use the limiter's or the cluster's code, and
// being pure it has no use for a network.
func TestDependencies(t *testing.T) {
	const module = "github.com/slotlimit/slotlimit/"
	for _, dep := range servertest.Dependencies(t) {
		switch {
		case dep == module+"keys", dep == module+"loadtest/audit":
		case dep == "net", strings.HasPrefix(dep, "net/"), strings.HasPrefix(dep, module):
			t.Errorf("depends on %s", dep)
		case strings.Contains(strings.Split(dep, "/")[0], ".") && !strings.HasPrefix(dep, "gonum.org/"):
			t.Errorf("depends on %s", dep)
		}
	}
}
