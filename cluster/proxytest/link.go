package proxytest

import (
	"io"
	"net"
	"sync"
	"time"
)

// A link is one connection of a client through the proxy.
type link struct {
	proxy *Proxy
	near  net.Conn // to the client
	far   net.Conn // to the node
}

// run carries bytes both ways until either end closes.
func (l *link) run() {
	var replies sync.WaitGroup
	replies.Go(l.carryReplies)
	_, _ = io.Copy(l.far, l.near)
	l.close()
	replies.Wait()
	l.proxy.forget(l)
}

func (l *link) close() {
	l.near.Close()
	l.far.Close()
}

// A fate is what becomes of one reply.
type fate int

const (
	passed fate = iota
	swallowed
	cut
	hung
	reset
)

// carryReplies takes what the node sends to its fate.
func (l *link) carryReplies() {
	buf := make([]byte, 64<<10)
	for {
		n, err := l.far.Read(buf)
		if err != nil {
			l.close()
			return
		}
		fate, latency := l.proxy.draw()
		if !l.proxy.wait(latency) {
			return
		}
		switch fate {
		case swallowed:
			continue
		case hung:
			// Not closed, even when the node does: only the client ends it.
			_, _ = io.Copy(io.Discard, l.far)
			return
		case cut:
			_, _ = l.near.Write(buf[:n/2])
			l.close()
			return
		case reset:
			// A socket closed so sends RST instead of FIN.
			_ = l.near.(*net.TCPConn).SetLinger(0)
			l.close()
			return
		}
		if _, err := l.near.Write(buf[:n]); err != nil {
			l.close()
			return
		}
	}
}

// draw decides on the next reply.
func (p *Proxy) draw() (fate, time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.counts.Replies++
	var latency time.Duration
	if p.rand.Float64() < p.faults.Delay {
		p.counts.Delayed++
		latency = p.faults.Latency
	}
	at := p.rand.Float64()
	for _, f := range []struct {
		share float64
		fate  fate
		count *int
	}{
		{p.faults.Swallow, swallowed, &p.counts.Swallowed},
		{p.faults.Cut, cut, &p.counts.Cut},
		{p.faults.Hang, hung, &p.counts.Hung},
		{p.faults.Reset, reset, &p.counts.HadReset},
	} {
		if at < f.share {
			*f.count++
			return f.fate, latency
		}
		at -= f.share
	}
	return passed, latency
}

// wait lets the time pass, and reports false if the proxy is closed before.
func (p *Proxy) wait(d time.Duration) bool {
	if d <= 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-p.done:
		return false
	case <-timer.C:
		return true
	}
}
