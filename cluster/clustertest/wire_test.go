package clustertest_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"
)

// patience bounds what must happen at once, so that a test which waits for nothing
// fails instead of hanging.
const patience = 20 * time.Second

// A wire is a connection that speaks bare RESP: go-redis would follow redirects,
// repeat commands and hide which connection was used.
type wire struct {
	tb testing.TB
	nc net.Conn
	r  *bufio.Reader
}

func dial(tb testing.TB, addr string) *wire {
	tb.Helper()
	nc, err := net.DialTimeout("tcp", addr, patience)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { nc.Close() })
	nc.SetDeadline(time.Now().Add(patience))
	return &wire{tb: tb, nc: nc, r: bufio.NewReader(nc)}
}

func (w *wire) send(args ...string) {
	w.tb.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(args))
	for _, a := range args {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(a), a)
	}
	if _, err := io.WriteString(w.nc, b.String()); err != nil {
		w.tb.Fatal(err)
	}
}

// do sends a command and returns its reply as text: +status, -error, :integer,
// "bulk", nil, [array] and {map}.
func (w *wire) do(args ...string) string {
	w.tb.Helper()
	w.send(args...)
	return w.read()
}

func (w *wire) read() string {
	w.tb.Helper()
	text, err := w.tryRead()
	if err != nil {
		w.tb.Fatal(err)
	}
	return text
}

func (w *wire) tryRead() (string, error) {
	line, err := w.r.ReadString('\n')
	if err != nil {
		return "", err
	}
	line = strings.TrimSuffix(line, "\r\n")
	n, _ := strconv.Atoi(line[1:])
	switch line[0] {
	case '+', '-', ':', ',':
		return line, nil
	case '_':
		return "nil", nil
	case '$', '=':
		if n < 0 {
			return "nil", nil
		}
		data := make([]byte, n+2)
		if _, err := io.ReadFull(w.r, data); err != nil {
			return "", err
		}
		return strconv.Quote(string(data[:n])), nil
	case '*', '%':
		if n < 0 {
			return "nil", nil
		}
		open, end := "[", "]"
		if line[0] == '%' {
			open, end, n = "{", "}", 2*n
		}
		items := make([]string, n)
		for i := range items {
			if items[i], err = w.tryRead(); err != nil {
				return "", err
			}
		}
		return open + strings.Join(items, " ") + end, nil
	}
	return "", fmt.Errorf("reply begins with %q", line)
}

// want checks the reply to a command. An "…" in want stands for any text.
func (w *wire) want(want string, args ...string) {
	w.tb.Helper()
	if got := w.do(args...); !matches(want, got) {
		w.tb.Errorf("%s:\n got %s\nwant %s", strings.Join(args, " "), got, want)
	}
}

func matches(pattern, text string) bool {
	parts := strings.Split(pattern, "…")
	if len(parts) == 1 {
		return pattern == text
	}
	if !strings.HasPrefix(text, parts[0]) {
		return false
	}
	text = text[len(parts[0]):]
	for _, part := range parts[1 : len(parts)-1] {
		at := strings.Index(text, part)
		if at < 0 {
			return false
		}
		text = text[at+len(part):]
	}
	return strings.HasSuffix(text, parts[len(parts)-1])
}
