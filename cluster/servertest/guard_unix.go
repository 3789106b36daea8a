//go:build unix

package servertest

import (
	"os/exec"
	"strconv"
)

// shellGuard has a shell kill the process pid if this process ends before release is
// called. The shell waits on a pipe whose other end only this process holds, and
// which the system closes when this process ends, however it does.
//
// release ends the guard, and is due as soon as the process has ended: its number
// will be another's some day.
func shellGuard(pid int) (release func(), err error) {
	sh := exec.Command("/bin/sh", "-c", `read -r released || kill -9 "$0"`, strconv.Itoa(pid))
	pipe, err := sh.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := sh.Start(); err != nil {
		return nil, err
	}
	return func() {
		_, _ = pipe.Write([]byte("released\n"))
		_ = pipe.Close()
		_ = sh.Wait()
	}, nil
}
