package cluster

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

func TestReplyParse(t *testing.T) {
	for _, c := range []struct {
		text     string
		integers []int64
		err      string // the beginning
	}{
		{":0\r\n", []int64{0}, ""},
		{":-1\r\n", []int64{-1}, ""},
		{"*0\r\n", nil, ""},
		{"*1\r\n:7\r\n", []int64{7}, ""},
		{"*3\r\n:1\r\n:-22\r\n:333\r\n", []int64{1, -22, 333}, ""},
		{":999999999999999999\r\n", []int64{999999999999999999}, ""},
		{":-9223372036854775808\r\n", []int64{-1 << 63}, ""},
		{":9223372036854775807\r\n", []int64{1<<63 - 1}, ""},
		{"-ERR no\r\n", nil, "ERR no"},
		{"-\r\n", nil, ""},
		{"$-1\r\n", nil, redis.Nil.Error()},
		{"*-1\r\n", nil, redis.Nil.Error()},
		{"+OK\r\n", nil, "reply is of type '+'"},
		{"$1\r\nx\r\n", nil, "reply is of type '$'"},
		{"$0\r\n\r\n", nil, "reply is of type '$'"},
		{"$4\r\n\r\n\r\n\r\n", nil, "reply is of type '$'"},
		{":\r\n", nil, "item 0"},
		{":x\r\n", nil, "item 0"},
		{":-\r\n", nil, "item 0"},
		{":1x\r\n", nil, "item 0"},
		{":9223372036854775808\r\n", nil, "item 0"},
		{"*2\r\n:1\r\n$1\r\nx\r\n", []int64{1}, "item 1"},
		{"*2\r\n$1\r\nx\r\n:1\r\n", []int64{1}, "item 0"},
		{"*2\r\n*2\r\n:1\r\n:2\r\n:3\r\n", []int64{3}, "item 0"},
		{"*1\r\n-ERR no\r\n", nil, "item 0"},
		{"*1\r\n$-1\r\n", nil, "item 0"},
	} {
		var r reply
		n, err := r.parse([]byte(c.text + ":5\r\n"))
		if n != len(c.text) || err != nil || !slices.Equal(r.integers, c.integers) {
			t.Errorf("%q: %d bytes, %v, %v, want %d, %v", c.text, n, r.integers, err, len(c.text), c.integers)
		}
		failed := strings.HasPrefix(c.text, "-") || c.err != ""
		if failed != (r.err != nil) || failed && !strings.HasPrefix(r.err.Error(), c.err) {
			t.Errorf("%q: says %v, want %q", c.text, r.err, c.err)
		}
		if _, refusal := errors.AsType[redis.Error](r.err); refusal != (c.text[0] == '-' || c.text == "$-1\r\n" || c.text == "*-1\r\n") {
			t.Errorf("%q: a redis.Error: %t", c.text, refusal)
		}
		// Whatever is missing of it, nothing is understood, and nothing of it stays.
		for length := range len(c.text) {
			var r reply
			if n, err := r.parse([]byte(c.text[:length])); n != 0 || err != nil || len(r.integers) != 0 {
				t.Errorf("%q: %d bytes, %v, %v, want none yet", c.text[:length], n, r.integers, err)
			}
		}
	}
}

func TestReplyParseRefuses(t *testing.T) {
	for _, text := range []string{
		"x\r\n", "\r\n", "\n", "x\n", "*x\r\n", "*\r\n", "$x\r\n", "$\r\n", "*99999999999999999999\r\n", "$99999999999999999999\r\n", "$1048577\r\n",
		"%1\r\n", "_\r\n", ",1\r\n", "*1\r\nx\r\n", "*1\r\n\r\n", "*1\r\n%0\r\n",
		"*1\r\n" + strings.Repeat("*1\r\n", maxNested+2) + ":1\r\n",
	} {
		var r reply
		if n, err := r.parse([]byte(text)); n != 0 || !errors.Is(err, errProtocol) {
			t.Errorf("%q: %d bytes, %v, want errProtocol", text, n, err)
		}
	}
}

// With ASKING before it, a request has two replies.
func TestAskingParse(t *testing.T) {
	for _, first := range []string{"+OK\r\n", "-ERR no\r\n"} {
		text := first + ":7\r\n"
		f := &flight{asking: true}
		if n, err := f.parse([]byte(text + ":8\r\n")); n != len(text) || err != nil || !slices.Equal(f.reply.integers, []int64{7}) {
			t.Errorf("%q: %d bytes, %v, %v", text, n, f.reply.integers, err)
		}
		for length := range len(text) {
			f := &flight{asking: true}
			if n, err := f.parse([]byte(text[:length])); n != 0 || err != nil {
				t.Errorf("%q: %d bytes, %v, want none yet", text[:length], n, err)
			}
		}
	}
}

func TestRedirect(t *testing.T) {
	for _, c := range []struct {
		said, addr string
		ask        bool
	}{
		{"MOVED 1 10.0.0.1:7001", "10.0.0.1:7001", false},
		{"ASK 1 10.0.0.1:7001", "10.0.0.1:7001", true},
		{"MOVED 1 :7001", "node:7001", false},
		{"MOVED 1 ?:7001", "node:7001", false},
		{"MOVED 1 redis-1.local:7001", "redis-1.local:7001", false},
		{"MOVED 1 ::1:7001", "[::1]:7001", false},
		{"ASK 1 fe80::2:7001", "[fe80::2]:7001", true},
		{"MOVED 1 [::1]:7001", "[::1]:7001", false},
		{"MOVED 1 node", "", false},
		{"MOVED 1", "", false},
		{"MOVED", "", false},
		{"MOVEDX 1 10.0.0.1:7001", "", false},
		{"ASKING 1 10.0.0.1:7001", "", false},
		{"ERR MOVED 1 10.0.0.1:7001", "", false},
		{"", "", false},
	} {
		if addr, ask := replyError(c.said).redirect("node:1"); addr != c.addr || ask != c.ask && addr != "" {
			t.Errorf("%q: %q, %t, want %q, %t", c.said, addr, ask, c.addr, c.ask)
		}
	}
}

// FuzzReply: whatever arrives, in whatever pieces, what is understood of it does not depend on
// the pieces, and never reaches beyond what has arrived.
func FuzzReply(f *testing.F) {
	for _, text := range []string{":1\r\n", "*2\r\n:1\r\n:2\r\n", "-ERR\r\n", "*1\r\n*1\r\n$3\r\nabc\r\n", "$-1\r\n", "*-1\r\n", "*1\r\n$99\r\n", ":-9223372036854775808\r\n"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		b = b[:min(len(b), 256)] // each of its beginnings is tried
		var whole reply
		n, err := whole.parse(b)
		switch {
		case n < 0 || n > len(b):
			t.Fatalf("%q: %d bytes of %d", b, n, len(b))
		case n > 0 && err != nil:
			t.Fatalf("%q: both %d bytes and %v", b, n, err)
		case err != nil && !errors.Is(err, errProtocol):
			t.Fatalf("%q: %v", b, err)
		case n == 0 && err == nil && len(whole.integers) > 0:
			t.Fatalf("%q: %v of a reply that is not whole", b, whole.integers)
		}
		if n == 0 {
			return
		}
		var again reply
		for length := range n {
			if m, err := again.parse(b[:length]); m != 0 || err != nil {
				t.Fatalf("%q: %d bytes, %v, of a reply of %d", b[:length], m, err, n)
			}
		}
		m, err := again.parse(b[:n:n])
		if m != n || err != nil || !slices.Equal(again.integers, whole.integers) || fmt.Sprint(again.err) != fmt.Sprint(whole.err) {
			t.Fatalf("%q: %d bytes, %v, %v; at once %d, %v, %v", b[:n], m, again.integers, again.err, n, whole.integers, whole.err)
		}
	})
}

// FuzzSeal: nothing but its own echo is an echo of the seal.
func FuzzSeal(f *testing.F) {
	f.Add(uint64(7), []byte(echo("7")))
	f.Add(uint64(7), []byte(echo("17")))
	f.Add(uint64(12), []byte("$2\r\n1"))
	f.Add(uint64(12), []byte("$2\r\n"))
	f.Add(uint64(1), []byte("-BUSY x\r\n"))
	f.Add(uint64(1), []byte("-MOVED 1 127.0.0.1:1\r\n"))
	f.Fuzz(func(t *testing.T, number uint64, b []byte) {
		s := seal(number)
		own := echo(fmt.Sprint(int64(s)))
		n, refused, err := s.parse(b)
		switch {
		case n < 0 || n > len(b) || n > 0 && err != nil || err != nil && !errors.Is(err, errProtocol):
			t.Fatalf("%q: %d bytes, %v", b, n, err)
		case refused && !strings.HasPrefix(string(b), "-BUSY ") && !strings.HasPrefix(string(b), "-LOADING ") && !strings.HasPrefix(string(b), "-MASTERDOWN "):
			t.Fatalf("%q passes for the refusal of a seal", b)
		case strings.HasPrefix(own, string(b)) && len(b) < len(own) && (n != 0 || err != nil):
			t.Fatalf("%q, a part of the echo: %d bytes, %v", b, n, err)
		case strings.HasPrefix(string(b), own) != (n == len(own) && err == nil && !refused):
			t.Fatalf("%q: %d bytes, %v, for the seal %d", b, n, err, number)
		case n > 0 && !refused && !strings.HasPrefix(string(b), own):
			t.Fatalf("%q passes for the seal %d", b, number)
		}
	})
}
