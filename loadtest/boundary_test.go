package main

import (
	"strings"
	"testing"

	"github.com/slotlimit/slotlimit/cluster/servertest"
)

// The weakness of fixed windows, held to its number: exactly twice the rate within one
// period, no more and no less.
func TestBoundaryPassesTwiceTheRate(t *testing.T) {
	status, stdout, stderr := loadtest(t, "boundary", "-limit", "100/1m")
	if status != exitOK || stderr != "" {
		t.Fatalf("exit status %d: %s\n%s", status, stderr, stdout)
	}
	for _, want := range []string{"\n200 passed within ", ": 2.00 times the rate of 100 in 1m0s\n", "#|#"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("no %q in\n%s", want, stdout)
		}
	}
	if n := strings.Count(stdout, ": allowed 100, denied 25\n"); n != 2 {
		t.Errorf("%d windows of 2 allowed 100 and denied 25:\n%s", n, stdout)
	}
}

func TestBoundaryOnRealCluster(t *testing.T) {
	c := servertest.Shared(t)
	status, stdout, stderr := loadtest(t, "boundary", "-addrs", strings.Join(c.Addrs(), ","), "-limit", "20/1s")
	if status != exitOK || !strings.Contains(stdout, "\n40 passed within ") {
		t.Errorf("exit status %d: %s\n%s", status, stderr, stdout)
	}
}
