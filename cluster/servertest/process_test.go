//go:build unix

package servertest

import (
	"io"
	"os"
	"os/exec"
	"testing"
	"time"
)

// childMode has the test binary act as a test process that gets killed, see child.
const childMode = "SERVERTEST_CHILD"

// child starts a program as the package starts servers, one that would run for long and
// holds our stdout, and waits to be killed.
func child(mode string) {
	sleep := exec.Command("sleep", "60")
	sleep.Stdout = os.Stdout
	var err error
	switch mode {
	case "process":
		started := make(chan error)
		p := &process{cmd: sleep, done: make(chan struct{})}
		go p.run(started)
		err = <-started
	case "guard":
		if err = sleep.Start(); err == nil {
			_, err = shellGuard(sleep.Process.Pid)
		}
	}
	if err != nil {
		panic(err)
	}
	os.Stdout.WriteString("up\n")
	select {}
}

// TestDiesWithParent kills a process that had started another, and waits for the end
// of the pipe that both of them write to: it comes when neither is left.
func TestDiesWithParent(t *testing.T) {
	if _, err := exec.LookPath("sleep"); err != nil {
		Skip(t, "%v", err)
	}
	for _, mode := range []string{"process", "guard"} {
		t.Run(mode, func(t *testing.T) {
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), childMode+"="+mode)
			cmd.Stderr = os.Stderr
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			up := make([]byte, 3)
			if _, err := io.ReadFull(out, up); err != nil {
				t.Fatal(err)
			}
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			late := time.AfterFunc(30*time.Second, func() { out.Close() })
			defer late.Stop()
			if _, err := io.ReadAll(out); err != nil {
				t.Fatalf("the program lives on: %v", err)
			}
			_ = cmd.Wait()
		})
	}
}

func TestGuardReleased(t *testing.T) {
	cat := exec.Command("cat")
	in, err := cat.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cat.Start(); err != nil {
		Skip(t, "%v", err)
	}
	release, err := shellGuard(cat.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	release()
	// It ends by itself, and well, so nobody killed it.
	in.Close()
	if err := cat.Wait(); err != nil {
		t.Errorf("the guard harmed what it had been released from: %v", err)
	}
}
