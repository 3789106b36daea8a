//go:build !unix

package faults

import "syscall"

// Processes cannot be stopped here, and sending such a signal says so.
const (
	pauseSignal  = syscall.Signal(0x13)
	resumeSignal = syscall.Signal(0x12)
)
