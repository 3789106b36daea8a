package faults

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
)

// A Machine is what a node runs on, as far as it can be broken from here. Every method
// returns when it is done.
type Machine interface {
	Kill(ctx context.Context) error   // ends the node at once
	Start(ctx context.Context) error  // starts a killed node again, as the same member
	Pause(ctx context.Context) error  // stops it: connections stay open, nothing is answered
	Resume(ctx context.Context) error // ends a pause
	Cut(ctx context.Context) error    // cuts it off from its peers, not from clients
	Join(ctx context.Context) error   // ends that

	// CanStart and CanCut say beforehand why Start or Cut would fail.
	CanStart(ctx context.Context) error
	CanCut(ctx context.Context) error

	String() string // for people, such as "process 4711"
}

// ErrMachine is returned where a node's process cannot be reached.
var ErrMachine = errors.New("cannot reach the node's process")

// FindMachine returns the process on this computer that a node is, or the container that
// publishes its port.
func FindMachine(ctx context.Context, n *Node) (Machine, error) {
	host, port, err := net.SplitHostPort(n.Addr)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMachine, err)
	}
	if !onThisComputer(host) {
		return nil, fmt.Errorf("%w: %s is on another computer", ErrMachine, n.Addr)
	}
	p, why := findProcess(ctx, n, port)
	if why == nil {
		return p, nil
	}
	c, whyNot := findContainer(ctx, n, port)
	if whyNot == nil {
		return c, nil
	}
	return nil, fmt.Errorf("%w: %s is no process here (%w) and no container (%w)", ErrMachine, n.Addr, why, whyNot)
}

func onThisComputer(host string) bool {
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	if ip == nil {
		return false
	}
	if ip.IsLoopback() {
		return true
	}
	own, err := net.InterfaceAddrs()
	return err == nil && slices.ContainsFunc(own, func(a net.Addr) bool {
		n, ok := a.(*net.IPNet)
		return ok && n.IP.Equal(ip)
	})
}
