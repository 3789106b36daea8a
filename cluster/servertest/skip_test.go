package servertest

import (
	"os"
	"path/filepath"
	"testing"
)

func TestSkip(t *testing.T) {
	for _, tt := range []struct {
		variable        string
		skipped, failed bool
	}{
		{"", true, false},
		{"0", true, false},
		{"1", false, true},
	} {
		t.Setenv(noSkip, tt.variable)
		ended := true
		r := record(t, func(tb testing.TB) {
			Skip(tb, "no %s", "redis")
			ended = false
		})
		if r.skipped != tt.skipped || r.failed != tt.failed || !r.says("no redis") || !ended {
			t.Errorf("%s=%q: skipped %t, failed %t, ended %t, said %q", noSkip, tt.variable, r.skipped, r.failed, ended, r.lines)
		}
	}
}

// TestNoServer is what a machine with nothing but Go sees.
func TestNoServer(t *testing.T) {
	t.Setenv(noSkip, "")
	t.Setenv("REDIS_SERVER", "")
	t.Setenv("PATH", t.TempDir())
	for name, start := range map[string]func(testing.TB){
		"Start":  func(tb testing.TB) { Start(tb) },
		"Shared": func(tb testing.TB) { Shared(tb) },
	} {
		if r := record(t, start); !r.skipped || !r.says("redis-server", "install", "REDIS_SERVER") {
			t.Errorf("%s without a server: skipped %t, said %q", name, r.skipped, r.lines)
		}
	}
}

func TestWrongServer(t *testing.T) {
	if _, err := os.Stat("/bin/sh"); err != nil {
		Skip(t, "no /bin/sh: %v", err)
	}
	t.Setenv(noSkip, "")
	fake := filepath.Join(t.TempDir(), "server")
	t.Setenv("REDIS_SERVER", fake)
	for says, want := range map[string]string{
		"Redis server v=6.2.14 sha=00000000:0": "version 6",
		"hello":                                "no Redis server",
	} {
		if err := os.WriteFile(fake, []byte("#!/bin/sh\necho '"+says+"'\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		if r := record(t, func(tb testing.TB) { Start(tb) }); !r.skipped || !r.says(want) {
			t.Errorf("a server that says %q: skipped %t, said %q", says, r.skipped, r.lines)
		}
	}
	for _, says := range []string{"Redis server v=10.0.1 sha=0", "Valkey server v=8.1.3 sha=0"} {
		if err := os.WriteFile(fake, []byte("#!/bin/sh\necho '"+says+"'\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		if r := record(t, func(tb testing.TB) { binary(tb) }); r.skipped || r.failed {
			t.Errorf("a server that says %q: %q", says, r.lines)
		}
	}
}
