// Package proxytest is a TCP proxy that loses replies, for tests of what a client
// counts when the network fails between a node's work and its answer.
//
//	p := proxytest.Start(t, 1)
//	client, err := cluster.Open(ctx, cluster.Config{Addrs: c.Addrs(), Dialer: p.Dial})
//	p.Inject(proxytest.Faults{Swallow: 0.02, Cut: 0.02, Hang: 0.01})
//
// A client joins by dialling with [Proxy.Dial], whatever address it wants: so the
// proxy stands in the way of every connection to every node, also to those that
// the client only learns of, and the nodes, which know nothing of it, talk to each
// other directly. The bytes go through real sockets on both sides; a node that
// refuses connections refuses them here too.
package proxytest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"time"
)

// Faults are shares, from 0 to 1, of what nodes send that meets a fate. One arrival
// at the proxy is one reply, except that replies of a pipeline, or to a client that
// does not wait for them, may arrive as one. Swallow, Cut, Hang and Reset exclude
// each other, and add up to at most 1. The zero value passes everything.
type Faults struct {
	Swallow float64 // dropped; the connection goes on as if nothing had been sent
	Cut     float64 // the first half is passed on, then the connection is closed
	Hang    float64 // dropped, and so is all that follows; the connection stays open
	Reset   float64 // dropped, and the connection reset

	Delay   float64       // passed on only after Latency; independent of the others
	Latency time.Duration // how long
}

// Counts are what a proxy did so far.
type Counts struct {
	Replies                        int // that arrived from nodes, those below included
	Swallowed, Cut, Hung, HadReset int
	Delayed                        int
}

// Lost is the number of replies that were not passed on whole.
func (c Counts) Lost() int { return c.Swallowed + c.Cut + c.Hung + c.HadReset }

// A Proxy carries connections, and harms them as told. [Start] and [New] make one.
// Its methods are safe for concurrent use.
type Proxy struct {
	listener *net.TCPListener // the near ends of the connections meet here

	pairing sync.Mutex // held from a dial to the accept that belongs to it
	links   sync.WaitGroup
	done    chan struct{}

	mu     sync.Mutex
	closed bool
	open   map[*link]struct{}
	faults Faults
	counts Counts
	rand   *rand.Rand
}

// TB is the part of [testing.TB] that Start needs.
type TB interface {
	Helper()
	Cleanup(func())
	Fatalf(format string, args ...any)
}

// Start returns a proxy that ends with the test.
func Start(tb TB, seed uint64) *Proxy {
	tb.Helper()
	p, err := New(seed)
	if err != nil {
		tb.Fatalf("proxytest: %v", err)
	}
	tb.Cleanup(p.Close)
	return p
}

// New returns a proxy that does no harm yet. The seed fixes the sequence of fates;
// which reply meets which depends on the order in which they arrive.
func New(seed uint64) (*Proxy, error) {
	listener, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return nil, err
	}
	return &Proxy{
		listener: listener,
		done:     make(chan struct{}),
		open:     map[*link]struct{}{},
		rand:     rand.New(rand.NewPCG(seed, 0)),
	}, nil
}

// Inject replaces the faults, for all connections, from the next reply on.
func (p *Proxy) Inject(f Faults) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = f
}

// Counts returns what the proxy did so far.
func (p *Proxy) Counts() Counts {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.counts
}

// Connections returns how many connections clients have open.
func (p *Proxy) Connections() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.open)
}

// Close ends all connections and waits until they are gone.
func (p *Proxy) Close() {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return
	}
	p.closed = true
	close(p.done)
	for l := range p.open {
		l.close()
	}
	p.mu.Unlock()
	p.listener.Close()
	p.links.Wait()
}

var errClosed = errors.New("the proxy is closed")

// Dial opens a connection through the proxy to the address. It has the form that
// go-redis and cluster.Config ask of a dialler. The node is dialled first, and its
// refusal returned as it is.
func (p *Proxy) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	var d net.Dialer
	far, err := d.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	client, near, err := p.pair(ctx)
	if err != nil {
		far.Close()
		return nil, fmt.Errorf("proxy to %s: %w", addr, err)
	}
	l := &link{proxy: p, near: near, far: far}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		client.Close()
		l.close()
		return nil, fmt.Errorf("proxy to %s: %w", addr, errClosed)
	}
	p.open[l] = struct{}{}
	p.links.Go(l.run)
	return client, nil
}

// pair returns the two ends of a new connection to the proxy itself.
func (p *Proxy) pair(ctx context.Context) (client, near net.Conn, err error) {
	p.pairing.Lock()
	defer p.pairing.Unlock()
	var d net.Dialer
	if client, err = d.DialContext(ctx, "tcp", p.listener.Addr().String()); err != nil {
		return nil, nil, err
	}
	for {
		if near, err = p.listener.Accept(); err != nil {
			client.Close()
			return nil, nil, err
		}
		// An earlier dial whose context ended in mid-air may have left one behind.
		if near.RemoteAddr().String() == client.LocalAddr().String() {
			return client, near, nil
		}
		near.Close()
	}
}

// forget takes a link that has ended off the list.
func (p *Proxy) forget(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.open, l)
}
