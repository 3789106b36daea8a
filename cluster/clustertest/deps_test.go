package clustertest_test

import (
	"strings"
	"testing"

	"github.com/slotlimit/slotlimit/cluster/servertest"
)

// Programs use clustertest too, so it must not link package testing, and package
// cluster's own tests use it, so it must not need package cluster.
func TestDependencies(t *testing.T) {
	const module = "github.com/slotlimit/slotlimit/"
	for _, dep := range servertest.Dependencies(t) {
		switch {
		case dep == module+"cluster/clustertest", dep == module+"keys":
		case strings.HasPrefix(dep, module), dep == "testing", dep == "flag", strings.HasPrefix(dep, "github.com/redis/"):
			t.Errorf("clustertest depends on %s", dep)
		}
	}
}
