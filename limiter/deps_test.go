package limiter_test

import (
	"strings"
	"testing"

	"github.com/slotlimit/slotlimit/cluster/servertest"
)

// Whoever imports the limiter compiles all that it imports, so what only some
// services use has packages of its own.
func TestDependencies(t *testing.T) {
	for _, dep := range servertest.Dependencies(t) {
		for prefix, reason := range map[string]string{
			"testing":                   "belongs to tests",
			"net/http":                  "belongs to limiter/httplimit",
			"flag":                      "belongs to programs",
			"google.golang.org/grpc":    "belongs to limiter/grpclimit",
			"go.opentelemetry.io":       "belongs to limiter/otellimit",
			"github.com/alicebob":       "belongs to cluster/clustertest",
			"github.com/testcontainers": "belongs to tests",
			"github.com/slotlimit/slotlimit/limiter/": "depends on limiter, not the other way round",
			"github.com/slotlimit/slotlimit/loadtest": "depends on limiter, not the other way round",
		} {
			if dep == prefix || strings.HasPrefix(dep, strings.TrimSuffix(prefix, "/")+"/") {
				t.Errorf("limiter depends on %s, which %s", dep, reason)
			}
		}
	}
}
