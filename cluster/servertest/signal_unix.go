//go:build unix

package servertest

import "syscall"

const (
	pauseSignal  = syscall.SIGSTOP
	resumeSignal = syscall.SIGCONT
)
