//go:build unix

package main

import (
	"syscall"
	"time"
)

// ownCPU returns the processor time that this process has used so far, and false if the
// system does not tell.
func ownCPU() (time.Duration, bool) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, false
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), true
}
