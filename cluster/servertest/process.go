package servertest

import (
	"os"
	"os/exec"
	"runtime"
)

// A process is a running program that is ours to end.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended and been waited for
	err  error         // how it ended; to be read after done
}

// startProcess starts a program that does not outlive this process.
//
// On Linux it is the kernel that sees to that, but it acts on the end of the thread
// that started the program, not of the process. So the thread is kept: one goroutine
// locked to it starts the program and then sits there until the program has ended.
//
// What it prints goes to output, which may be nil.
func startProcess(output *os.File, bin string, args ...string) (*process, error) {
	p := &process{cmd: exec.Command(bin, args...), done: make(chan struct{})}
	if output != nil { // a nil *os.File is no nil io.Writer
		p.cmd.Stdout, p.cmd.Stderr = output, output
	}
	started := make(chan error)
	go p.run(started)
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

func (p *process) run(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	dieWithParent(p.cmd)
	if err := p.cmd.Start(); err != nil {
		started <- err
		return
	}
	release, err := guard(p.pid())
	if err != nil {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
		started <- err
		return
	}
	started <- nil
	p.err = p.cmd.Wait()
	release()
	close(p.done)
}

func (p *process) pid() int { return p.cmd.Process.Pid }

// kill ends the process at once, also when it is stopped by a signal, and waits for it.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // fails only when it has ended, which is what is wanted
	<-p.done
}
