package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/redis/go-redis/v9"
)

// A scripted is a node whose replies the test chooses. It greets by itself.
type scripted struct {
	// answer returns what is sent back for a command, nothing for "". The commands are
	// those of lanes: EVALSHA, EVAL, ASKING, and PING with a number. One is answered at a time.
	answer func(p *peer, args []string) string

	// greet, if not nil, answers PING without a number, which ends the greeting.
	greet func(p *peer, args []string) string

	// admit, if not nil, is called before a connection is opened.
	admit func(ctx context.Context) error

	// wear, if not nil, is put around the client's end of a connection.
	wear func(net.Conn) net.Conn

	turn  sync.Mutex
	mu    sync.Mutex
	peers []*peer
}

// A peer is the node's end of a connection.
type peer struct {
	number int // from 0
	conn   net.Conn

	mu      sync.Mutex
	reads   [][]string // commands, by the read that they came with
	out     bytes.Buffer
	waiting chan struct{} // there is something in out
	gone    bool
}

// usual answers as a node does: a script returns its first argument.
func usual(_ *peer, args []string) string {
	switch args[0] {
	case "EVALSHA", "EVAL":
		return ":" + args[4] + "\r\n"
	case "PING":
		return echo(args[1])
	}
	return "+OK\r\n"
}

// echo is the reply to PING with a number.
func echo(number string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(number), number) }

// dial opens a connection in memory, for the client's Dialer.
func (n *scripted) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	if n.admit != nil {
		if err := n.admit(ctx); err != nil {
			return nil, err
		}
	}
	near, far := net.Pipe()
	n.serve(far)
	if n.wear != nil {
		near = n.wear(near)
	}
	return near, nil
}

func (n *scripted) serve(conn net.Conn) {
	n.mu.Lock()
	defer n.mu.Unlock()
	p := &peer{number: len(n.peers), conn: conn, waiting: make(chan struct{}, 1)}
	n.peers = append(n.peers, p)
	go p.write()
	go p.serve(n)
}

// peer returns the connection of the number, nil if it was not opened yet.
func (n *scripted) peer(number int) *peer {
	n.mu.Lock()
	defer n.mu.Unlock()
	if number < len(n.peers) {
		return n.peers[number]
	}
	return nil
}

// opened returns how many connections there have been.
func (n *scripted) opened() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.peers)
}

func (p *peer) serve(n *scripted) {
	defer p.leave()
	in, buffer := []byte(nil), make([]byte, 1<<20)
	for {
		got, err := p.conn.Read(buffer)
		if err != nil {
			return
		}
		in = append(in, buffer[:got]...)
		commands, rest := split(in)
		in = rest
		p.note(commands)
		for _, args := range commands {
			switch {
			case args[0] == "HELLO":
				p.say("-ERR unknown command 'HELLO'\r\n")
			case args[0] == "PING" && len(args) == 1 && n.greet != nil:
				p.say(n.greet(p, args))
			case args[0] == "PING" && len(args) == 1:
				p.say("+PONG\r\n")
			case args[0] == "CLIENT":
				p.say("+OK\r\n")
			default:
				n.turn.Lock()
				reply := n.answer(p, args)
				n.turn.Unlock()
				p.say(reply)
			}
		}
	}
}

// split takes the whole commands off the beginning of b.
func split(b []byte) (commands [][]string, rest []byte) {
	for {
		line, n := firstLine(b)
		if n == 0 {
			return commands, b
		}
		count, _ := strconv.Atoi(string(line[1:]))
		args := make([]string, 0, count)
		for range count {
			line, length := firstLine(b[n:])
			if length == 0 {
				return commands, b
			}
			size, _ := strconv.Atoi(string(line[1:]))
			if n += length; len(b) < n+size+2 {
				return commands, b
			}
			args = append(args, string(b[n:n+size]))
			n += size + 2
		}
		args[0] = strings.ToUpper(args[0])
		commands, b = append(commands, args), b[n:]
	}
}

// note keeps the commands of one read that belong to calls.
func (p *peer) note(commands [][]string) {
	var names []string
	for _, args := range commands {
		if args[0] == "EVALSHA" || args[0] == "EVAL" {
			names = append(names, args[0]+" "+args[4])
		} else if args[0] == "PING" && len(args) == 2 || args[0] == "ASKING" {
			names = append(names, args[0])
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(names) > 0 {
		p.reads = append(p.reads, names)
	}
}

// got returns what came, a text for each read.
func (p *peer) got() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	texts := make([]string, len(p.reads))
	for i, names := range p.reads {
		texts[i] = strings.Join(names, ", ")
	}
	return texts
}

// say sends, without waiting for anybody who reads.
func (p *peer) say(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gone {
		return
	}
	p.out.WriteString(text)
	select {
	case p.waiting <- struct{}{}:
	default:
	}
}

// leave ends the connection, and whoever writes to it.
func (p *peer) leave() {
	p.conn.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.gone = true
	close(p.waiting)
}

func (p *peer) write() {
	for range p.waiting {
		p.mu.Lock()
		text := bytes.Clone(p.out.Bytes())
		p.out.Reset()
		p.mu.Unlock()
		if _, err := p.conn.Write(text); err != nil {
			return
		}
	}
}

// wrapped returns a client of the node, to which it has no connection yet.
func wrapped(t *testing.T, n *scripted) *Client {
	t.Helper()
	if n.answer == nil {
		n.answer = usual
	}
	c, err := Wrap(redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", Dialer: n.dial, DialTimeout: DefaultDialTimeout / 4, DisableIdentity: true}))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// bubble runs a test whose time stands still while anybody has something to do, and which
// ends only when every goroutine has. Flights and their channels stay in it.
func bubble(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	renew := func() { flights = sync.Pool{New: flights.New} }
	renew()
	defer renew()
	synctest.Test(t, test)
}

var echoScript = NewScript(`return ARGV[1]`)

// call returns a call to which the right reply is n.
func call(n int64) Call { return Call{Script: echoScript, Key: "k", Args: []int64{n}} }

// calls returns calls to which the right replies are 1 to n.
func calls(n int) []Call {
	all := make([]Call, n)
	for i := range all {
		all[i] = call(int64(i + 1))
	}
	return all
}

// verdict says in a word what became of a call to which the right reply is n.
func verdict(n int64, reply []int64, err error) string {
	switch {
	case errors.Is(err, ErrAmbiguous):
		return "ambiguous"
	case errors.Is(err, ErrUnavailable):
		return "unavailable"
	case err != nil:
		return "unclassified: " + err.Error()
	case len(reply) != 1 || reply[0] != n:
		return fmt.Sprintf("WRONG REPLY %v", reply)
	}
	return "ok"
}

// verdicts does so for all calls of [calls].
func verdicts(outcomes []Outcome) string {
	var words []string
	for i, o := range outcomes {
		words = append(words, verdict(int64(i+1), o.Reply, o.Err))
	}
	return strings.Join(words, " ")
}

// want runs a call, and reports an error unless the verdict on it is the one given.
func want(t *testing.T, ctx context.Context, c *Client, of Call, what string) {
	t.Helper()
	reply, err := c.Run(ctx, of)
	if got := verdict(of.Args[0], reply, err); got != what {
		t.Errorf("call %d: %s (%v), want %s", of.Args[0], got, err, what)
	}
}
