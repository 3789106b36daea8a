package cluster_test

import (
	"strings"
	"testing"

	"github.com/slotlimit/slotlimit/cluster/servertest"
)

// cluster is below limiter, and below the tests' clusters, which a service must not
// compile.
func TestDependencies(t *testing.T) {
	const module = "github.com/slotlimit/slotlimit/"
	for _, dep := range servertest.Dependencies(t) {
		switch {
		case dep == module+"cluster", dep == module+"keys":
		case strings.HasPrefix(dep, module):
			t.Errorf("cluster depends on %s, which is above it", dep)
		case dep == "testing", dep == "flag", strings.HasPrefix(dep, "github.com/alicebob/"):
			t.Errorf("cluster depends on %s, which belongs to tests and programs", dep)
		}
	}
}
