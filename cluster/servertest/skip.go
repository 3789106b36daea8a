package servertest

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"testing"
)

// noSkip is the variable that turns skips into failures: where everything is said
// to be installed, a test that did not run is a mistake, and a green run hides it.
const noSkip = "SLOTLIMIT_NO_SKIP"

// Skip skips the test for want of something outside of this project, and says what:
// the reason should name what to install or set. With SLOTLIMIT_NO_SKIP=1 the test
// fails instead. It does not return.
func Skip(tb testing.TB, format string, args ...any) {
	tb.Helper()
	reason := fmt.Sprintf(format, args...)
	if os.Getenv(noSkip) == "1" {
		tb.Fatalf("%s (%s=1 makes this a failure)", reason, noSkip)
	}
	tb.Skip(reason)
}

var version = regexp.MustCompile(`\bv=(\d+)\.`)

// binary finds the server to run, or skips the test.
func binary(tb testing.TB) string {
	tb.Helper()
	name := os.Getenv("REDIS_SERVER")
	if name == "" {
		name = "redis-server"
	}
	path, err := exec.LookPath(name)
	if err != nil {
		Skip(tb, "no %s in PATH: install Redis 7.0 or later, or name its server in REDIS_SERVER", name)
	}
	out, err := exec.Command(path, "--version").Output()
	if err != nil {
		Skip(tb, "%s --version: %v", path, err)
	}
	// CLUSTER ADDSLOTSRANGE, and much that this project relies on, came with 7.0.
	m := version.FindSubmatch(out)
	if m == nil {
		Skip(tb, "%s --version says %q: it is no Redis server", path, out)
	}
	if major, _ := strconv.Atoi(string(m[1])); major < 7 {
		Skip(tb, "%s is version %s: Redis 7.0 or later is needed", path, m[1])
	}
	return path
}
