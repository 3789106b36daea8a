package proxytest

import (
	"bufio"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// echo is a server that sends each line back, and the address where it listens.
func echo(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				lines := bufio.NewReader(conn)
				for {
					line, err := lines.ReadBytes('\n')
					if err != nil {
						return
					}
					conn.Write(line)
				}
			}()
		}
	}()
	return listener.Addr().String()
}

func dial(t *testing.T, p *Proxy, addr string) net.Conn {
	t.Helper()
	conn, err := p.Dial(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// ask sends a line and returns what comes back, up to the line's end. It waits long
// for an answer that should come and shortly for one that should not.
func ask(t *testing.T, conn net.Conn, wait time.Duration) (string, error) {
	t.Helper()
	if _, err := io.WriteString(conn, "12345678\n"); err != nil {
		t.Fatal(err)
	}
	if err := conn.SetReadDeadline(time.Now().Add(wait)); err != nil {
		t.Fatal(err)
	}
	return bufio.NewReader(conn).ReadString('\n')
}

const (
	long  = 10 * time.Second
	short = 50 * time.Millisecond
)

func TestPasses(t *testing.T) {
	p, addr := Start(t, 1), echo(t)
	for range 3 {
		conn := dial(t, p, addr)
		for range 3 {
			if got, err := ask(t, conn, long); got != "12345678\n" || err != nil {
				t.Fatalf("%q, %v", got, err)
			}
		}
	}
	if c := p.Counts(); c.Replies != 9 || c.Lost() != 0 || p.Connections() != 3 {
		t.Errorf("%+v on %d connections", c, p.Connections())
	}
}

func TestFaults(t *testing.T) {
	for name, tt := range map[string]struct {
		faults Faults
		wait   time.Duration
		got    string
		err    error
		after  bool // the connection is of use afterwards
		count  Counts
	}{
		"swallow": {Faults{Swallow: 1}, short, "", os.ErrDeadlineExceeded, true, Counts{Replies: 2, Swallowed: 1}},
		"cut":     {Faults{Cut: 1}, long, "1234", io.EOF, false, Counts{Replies: 1, Cut: 1}},
		"hang":    {Faults{Hang: 1}, short, "", os.ErrDeadlineExceeded, false, Counts{Replies: 1, Hung: 1}},
		"reset":   {Faults{Reset: 1}, long, "", syscall.ECONNRESET, false, Counts{Replies: 1, HadReset: 1}},
		"delay": {Faults{Delay: 1, Latency: 2 * short}, short, "", os.ErrDeadlineExceeded, true,
			Counts{Replies: 2, Delayed: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			p, addr := Start(t, 1), echo(t)
			conn := dial(t, p, addr)
			p.Inject(tt.faults)
			if got, err := ask(t, conn, tt.wait); got != tt.got || !errors.Is(err, tt.err) {
				t.Errorf("%q, %v, want %q, %v", got, err, tt.got, tt.err)
			}
			p.Inject(Faults{})
			if tt.after {
				if got, err := ask(t, conn, long); got != "12345678\n" || err != nil {
					t.Errorf("afterwards: %q, %v", got, err)
				}
			} else if _, err := io.WriteString(conn, "1\n"); err == nil {
				_ = conn.SetReadDeadline(time.Now().Add(short))
				if n, err := conn.Read(make([]byte, 9)); err == nil {
					t.Errorf("afterwards %d bytes came", n)
				}
			}
			// A late reply is in the way of the next one, which the proxy has yet to count.
			for until := time.Now().Add(long); p.Counts() != tt.count; time.Sleep(time.Millisecond) {
				if time.Now().After(until) {
					t.Fatalf("%+v, want %+v", p.Counts(), tt.count)
				}
			}
			if got, err := ask(t, dial(t, p, addr), long); got != "12345678\n" || err != nil {
				t.Errorf("another connection: %q, %v", got, err)
			}
		})
	}
}

// The shares come out, and the same seed makes the same of them.
func TestShares(t *testing.T) {
	const draws = 20000
	var counts [2]Counts
	for i := range counts {
		p := Start(t, 7)
		p.Inject(Faults{Swallow: 0.1, Cut: 0.05, Hang: 0.02, Reset: 0.01, Delay: 0.3})
		for range draws {
			p.draw()
		}
		counts[i] = p.Counts()
	}
	if counts[0] != counts[1] {
		t.Errorf("one seed: %+v and %+v", counts[0], counts[1])
	}
	for _, tt := range []struct {
		got   int
		share float64
	}{
		{counts[0].Swallowed, 0.1}, {counts[0].Cut, 0.05}, {counts[0].Hung, 0.02},
		{counts[0].HadReset, 0.01}, {counts[0].Delayed, 0.3},
	} {
		if want := tt.share * draws; float64(tt.got) < 0.8*want || float64(tt.got) > 1.2*want {
			t.Errorf("%d of %d, want about %v", tt.got, draws, want)
		}
	}
}

// A node that refuses is heard to refuse.
func TestRefused(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listener.Close()
	_, err = Start(t, 1).Dial(t.Context(), "tcp", listener.Addr().String())
	var op *net.OpError
	if !errors.As(err, &op) || op.Op != "dial" || !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("%v, want a refused dial", err)
	}
}

func TestClose(t *testing.T) {
	p, addr := Start(t, 1), echo(t)
	conn := dial(t, p, addr)
	p.Inject(Faults{Hang: 1})
	if _, err := ask(t, conn, short); err == nil {
		t.Fatal("an answer")
	}
	p.Close()
	_ = conn.SetReadDeadline(time.Now().Add(long))
	if _, err := conn.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%v after the proxy's end", err)
	}
	if n := p.Connections(); n != 0 {
		t.Errorf("%d connections", n)
	}
	if _, err := p.Dial(t.Context(), "tcp", addr); err == nil {
		t.Error("dialled through a closed proxy")
	}
}
