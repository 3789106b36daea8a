package servertest

import (
	"os/exec"
	"strings"
	"testing"
)

// Dependencies returns the import paths of all packages that the package under test
// needs, itself included: a rule of what may depend on what is a test. It fails the
// test when the go command does, or knows of so few that it cannot be the whole list.
func Dependencies(tb testing.TB) []string {
	tb.Helper()
	out, err := exec.CommandContext(tb.Context(), "go", "list", "-deps", ".").CombinedOutput()
	if err != nil {
		tb.Fatalf("go list: %v\n%s", err, out)
	}
	deps := strings.Fields(string(out))
	if len(deps) < 20 {
		tb.Fatalf("go list knows of only %d packages", len(deps))
	}
	return deps
}
