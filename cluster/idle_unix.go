//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package cluster

import (
	"net"
	"syscall"
)

// An idleProbe looks whether a connection on which nothing is under way has been ended
// by the other side in the meantime, by a restart or for being idle. Without the
// look the next call would be written to nobody, and be ambiguous.
type idleProbe struct {
	raw  syscall.RawConn // nil where there is no looking
	look func(fd uintptr)
	dead bool
}

func newIdleProbe(conn net.Conn) *idleProbe {
	p := &idleProbe{}
	if c, ok := conn.(interface{ NetConn() net.Conn }); ok { // TLS
		conn = c.NetConn()
	}
	if c, ok := conn.(syscall.Conn); ok {
		p.raw, _ = c.SyscallConn()
	}
	p.look = func(fd uintptr) {
		var b [1]byte
		n, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		p.dead = err != syscall.EAGAIN && err != syscall.EWOULDBLOCK && err != syscall.EINTR
		p.dead = p.dead || n > 0
	}
	return p
}

// ended reports whether the connection has ended, or says something unasked.
func (p *idleProbe) ended() bool {
	if p.raw == nil {
		return false
	}
	p.dead = false
	return p.raw.Control(p.look) != nil || p.dead
}
