package clustertest

import (
	"bufio"
	"errors"
	"io"
	"net"
)

// A connection is one client of one node. One goroutine reads, runs and answers;
// replies go out when the client has sent nothing more, so a pipeline gets its
// replies in few writes.
type connection struct {
	node    *node
	nc      net.Conn
	dead    chan struct{}
	in      *bufio.Reader
	out     *bufio.Writer
	session session
}

// A session is what a node remembers of a client between commands.
type session struct {
	node     *node
	id       int64
	name     string
	readOnly bool // READONLY was sent: a replica may answer reads
	asking   bool // ASKING was sent: the next command may use an importing slot
	closing  bool // QUIT was sent
	tx       *transaction
	watching []string
	changed  bool // a watched key was written to
	reply    reply
}

func newConnection(n *node, nc net.Conn, dead chan struct{}) *connection {
	return &connection{
		node: n, nc: nc, dead: dead,
		in: bufio.NewReader(nc), out: bufio.NewWriter(nc),
		session: session{node: n, id: n.nextID.Add(1)},
	}
}

func (c *connection) run() {
	for {
		args, err := readCommand(c.in)
		if err != nil {
			var broken protocolError
			if errors.As(err, &broken) {
				c.session.reply.fail(broken.Error())
				c.send()
				c.out.Flush()
			}
			return
		}
		if len(args) > 0 && !c.answer(args) {
			return
		}
		// Only when nothing more has come in: a pipeline is answered in one write.
		if c.in.Buffered() == 0 && c.out.Flush() != nil {
			return
		}
	}
}

// answer runs one command and queues its reply. It returns false when the
// connection must end.
func (c *connection) answer(args []string) bool {
	loss, ok := c.handle(args)
	if !ok {
		return false
	}
	if loss != nil {
		// Replies of earlier commands were on their way already.
		c.out.Flush()
		if loss.silent {
			c.session.reply.b = c.session.reply.b[:0]
			io.Copy(io.Discard, c.in) // until the client gives up or the node dies
		}
		return false
	}
	if c.send() != nil {
		return false
	}
	if c.session.closing {
		c.out.Flush()
		return false
	}
	return true
}

// send queues the reply outside of all locks: a client that does not read must
// stop nobody else.
func (c *connection) send() error {
	_, err := c.out.Write(c.session.reply.b)
	c.session.reply.b = c.session.reply.b[:0]
	return err
}

// handle waits while the node hangs, then checks and runs the command under the
// cluster's lock. It returns the fault that swallows the reply, if any, and false
// if the node died first.
func (c *connection) handle(args []string) (*Fault, bool) {
	cmd := lookup(args[0])
	if cmd != nil {
		c.node.requests[cmd.index].Add(1)
	}
	// Commands that change the topology need it for themselves.
	alone := cmd != nil && (cmd.name == "CLUSTER" || cmd.name == "MIGRATE")
	lock, unlock := c.node.cluster.mu.RLock, c.node.cluster.mu.RUnlock
	if alone {
		lock, unlock = c.node.cluster.mu.Lock, c.node.cluster.mu.Unlock
	}
	for {
		lock()
		hung := c.node.hung
		if hung == nil {
			break
		}
		unlock()
		select {
		case <-hung:
		case <-c.dead:
			return nil, false
		}
	}
	defer unlock()
	select {
	case <-c.dead:
		return nil, false
	default:
	}
	return c.session.handle(cmd, args), true
}
