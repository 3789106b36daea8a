package keys

import (
	"os/exec"
	"strings"
	"testing"
)

// TestStandardLibraryOnly holds the bottom of the dependency order in place.
func TestStandardLibraryOnly(t *testing.T) {
	const self = "github.com/slotlimit/slotlimit/keys"
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", ".")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s", cmd, err, &stderr)
	}
	deps := strings.Fields(string(out))
	if len(deps) != 1 || deps[0] != self {
		t.Errorf("package keys depends on %q, want itself alone beyond the standard library: "+
			"it is for tools that only look into a cluster too, which should not have to build a Redis client, "+
			"and everything else here depends on it, so an import of the module's own would soon be a cycle", deps)
	}
}
