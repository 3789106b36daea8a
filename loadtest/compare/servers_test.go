package main

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slotlimit/slotlimit/cluster/servertest"
)

// Without -addrs the program starts servers, and leaves none behind.
func TestOwnServers(t *testing.T) {
	for _, tool := range []string{"redis-cli", "redis-server"} {
		name := tool
		if given := os.Getenv(strings.ToUpper(strings.ReplaceAll(tool, "-", "_"))); given != "" {
			name = given
		}
		if _, err := exec.LookPath(name); err != nil {
			servertest.Skip(t, "no %s in PATH: install Redis 7.0 or later", name)
		}
	}
	t.Setenv("TMPDIR", t.TempDir())
	t.Setenv("PORT", "18421")
	file := filepath.Join(t.TempDir(), "result.json")
	status, stdout, stderr := runWith(t, contenders, "-limiters", "slotlimit", "-users", "9", "-goroutines", "2", "-rounds", "1",
		"-duration", "50ms", "-json", file)
	if status != exitOK || !strings.HasPrefix(stdout, "3 primaries, 127.0.0.1:18421, 127.0.0.1:18422, 127.0.0.1:18423, ") {
		t.Fatalf("exit status %d: %s\n%s", status, stderr, stdout)
	}
	for _, r := range readResult(t, file).Rows {
		if r.ClientCPU <= 0 || r.ServerCPU <= 0 || r.Allocs <= 0 {
			t.Errorf("what a decision costs is missing: %+v", r)
		}
	}
	for port := 18421; port <= 18426; port++ {
		if conn, err := net.Dial("tcp", addr(port)); err == nil {
			conn.Close()
			t.Errorf("a server still listens at port %d", port)
		}
	}
	left, err := os.ReadDir(os.Getenv("TMPDIR"))
	if err != nil || len(left) > 0 {
		t.Errorf("%v is left, %v", left, err)
	}
}
