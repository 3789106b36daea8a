package servertest

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if mode := os.Getenv(childMode); mode != "" {
		child(mode)
		return
	}
	goleak.VerifyTestMain(Main(m))
}

// A recorder stands for the test of a user of this package, and notes what is done to it.
type recorder struct {
	testing.TB
	mu      sync.Mutex
	lines   []string
	skipped bool
	failed  bool
}

// record runs f as a test of its own would be, and waits for its end.
func record(tb testing.TB, f func(testing.TB)) *recorder {
	r := &recorder{TB: tb}
	done := make(chan struct{})
	go func() {
		defer close(done)
		f(r)
	}()
	<-done
	return r
}

func (r *recorder) note(line string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, line)
}

func (r *recorder) Helper() {}

func (r *recorder) Error(args ...any) {
	r.note(fmt.Sprint(args...))
	r.failed = true
}

func (r *recorder) Errorf(format string, args ...any) { r.Error(fmt.Sprintf(format, args...)) }

func (r *recorder) Fatal(args ...any) {
	r.Error(args...)
	runtime.Goexit()
}

func (r *recorder) Fatalf(format string, args ...any) { r.Fatal(fmt.Sprintf(format, args...)) }

func (r *recorder) Skip(args ...any) {
	r.note(fmt.Sprint(args...))
	r.skipped = true
	runtime.Goexit()
}

// says tells whether one of the lines holds all of these words.
func (r *recorder) says(words ...string) bool {
	return slices.ContainsFunc(r.lines, func(line string) bool {
		return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(line, w) })
	})
}
