package servertest

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"syscall"
	"testing"
	"time"
)

// TestOutlivesThread starts a program from a thread that ends, as any test's goroutine
// may that locks itself to one.
func TestOutlivesThread(t *testing.T) {
	var p *process
	var err error
	thread := make(chan int)
	over := make(chan struct{})
	defer close(over)
	var start func()
	start = func() {
		runtime.LockOSThread() // and never unlocked: so the thread ends with the goroutine
		if syscall.Gettid() == os.Getpid() {
			// save for the first thread, which stays: a second goroutine cannot get it.
			go start()
			<-over
			runtime.UnlockOSThread()
			return
		}
		p, err = startProcess(nil, "sleep", "60")
		thread <- syscall.Gettid()
	}
	go start()
	task := fmt.Sprintf("/proc/self/task/%d", <-thread)
	if err != nil {
		Skip(t, "%v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	gone := until(ctx, func() error {
		if _, err := os.Stat(task); err == nil {
			return fmt.Errorf("the thread is still there")
		}
		return nil
	})
	if gone != nil {
		t.Fatal(gone)
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Errorf("the program ended with the thread: %v", err)
	}
	<-p.done
	if got := p.cmd.ProcessState.Sys().(syscall.WaitStatus).Signal(); got != syscall.SIGTERM {
		t.Errorf("the program was ended by %v before the test did it", got)
	}
}
