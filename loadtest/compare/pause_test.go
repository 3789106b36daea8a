package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/slotlimit/slotlimit/cluster/servertest"
)

// On real servers, one primary after the other stops, nobody else's calls do, and the cluster is
// whole afterwards.
func TestPause(t *testing.T) {
	c := servertest.Start(t)
	file := filepath.Join(t.TempDir(), "result.json")
	status, stdout, stderr := runWith(t, contenders, "pause", "-addrs", strings.Join(c.Addrs(), ","),
		"-users", "300", "-goroutines", "2", "-rounds", "2", "-duration", "300ms", "-json", file)
	if status != exitOK || !strings.Contains(stdout, "slotlimit: the other primaries kept ") || !strings.Contains(stdout, "slotlimit   counted right") {
		t.Fatalf("exit status %d: %s\n%s", status, stderr, stdout)
	}
	got := readResult(t, file)
	if len(got.Pauses) != 6 {
		t.Fatalf("%d samples", len(got.Pauses))
	}
	for i, s := range got.Pauses {
		if s.Paused != (i%3 == s.Round) || s.Before <= 0 || s.During <= 0 && !s.Paused || (s.Alone > 0) == s.Paused {
			t.Errorf("sample %d: %+v", i, s)
		}
		// What was under way when it stopped may still be answered.
		if s.Paused && s.During > s.Before/2 {
			t.Errorf("a primary that is paused answers: %+v", s)
		}
	}
	if err := c.WaitWhole(t.Context()); err != nil {
		t.Error(err)
	}
}
