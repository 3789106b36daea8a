package cluster

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/redis/go-redis/v9"
)

// A reply is what a node answered to a script: integers, or an error.
type reply struct {
	integers []int64
	err      error // a replyError, or says that this is no reply of a script
}

func (r *reply) clear() { r.integers, r.err = r.integers[:0], nil }

// A replyError is an error reply. It is a redis.Error.
type replyError string

func (e replyError) Error() string { return string(e) }

// RedisError makes it a redis.Error.
func (e replyError) RedisError() {}

// errProtocol means that what came in is not RESP2, or was not asked for.
var errProtocol = errors.New("cluster: the node's answer is none")

// Bounds of a reply. Scripts reply a few integers and errors a line; what is beyond
// these is no reply of theirs.
const (
	maxReply  = 1 << 20 // bytes
	maxNested = 16      // arrays in arrays
)

// parse reads the script's reply at the start of b into r, and returns its length,
// or 0 if its end has not arrived yet. The error, always errProtocol, means that
// nothing behind it can be understood either.
func (r *reply) parse(b []byte) (int, error) {
	line, n := firstLine(b)
	if n == 0 {
		return 0, nil
	}
	switch line[0] {
	case '-':
		r.err = replyError(line[1:])
		return n, nil
	case ':':
		return r.parseItems(b, 0, 1)
	case '*':
		count, err := strconv.Atoi(string(line[1:]))
		if err != nil {
			return 0, fmt.Errorf("%w: array of %q", errProtocol, line[1:])
		}
		if count < 0 {
			r.err = redis.Nil
		}
		return r.parseItems(b, n, count)
	}
	r.err = fmt.Errorf("reply is of type %q, no integers", line[0])
	if string(line) == "$-1" {
		r.err = redis.Nil
	}
	return skip(b, 0)
}

// parseItems reads the count items of an array that begin at b[n:].
func (r *reply) parseItems(b []byte, n, count int) (int, error) {
	for i := range count {
		line, length := firstLine(b[n:])
		if length == 0 {
			r.clear()
			return 0, nil
		}
		if value, ok := integer(line); ok {
			r.integers = append(r.integers, value)
			n += length
			continue
		}
		length, err := skip(b[n:], 1)
		if length == 0 {
			r.clear()
			return 0, err
		}
		r.err = fmt.Errorf("item %d of the reply is of type %q, not an integer", i, line[0])
		n += length
	}
	return n, nil
}

// integer reads the line of an integer.
func integer(line []byte) (int64, bool) {
	if line[0] != ':' {
		return 0, false
	}
	digits := line[1:]
	negative := len(digits) > 0 && digits[0] == '-'
	if negative {
		digits = digits[1:]
	}
	if len(digits) == 0 || len(digits) > 18 { // 18 nines fit, and are far above 2^53
		n, err := strconv.ParseInt(string(line[1:]), 10, 64)
		return n, err == nil
	}
	var n int64
	for _, d := range digits {
		if d < '0' || d > '9' {
			return 0, false
		}
		n = 10*n + int64(d-'0')
	}
	if negative {
		n = -n
	}
	return n, true
}

// skip returns the length of the reply at the start of b, whatever it is, or 0 if its
// end has not arrived yet.
func skip(b []byte, depth int) (int, error) {
	line, n := firstLine(b)
	if n == 0 {
		return 0, nil
	}
	switch line[0] {
	case '+', '-', ':':
		return n, nil
	case '$', '*':
	default:
		return 0, fmt.Errorf("%w: begins with %q", errProtocol, line[0])
	}
	count, err := strconv.Atoi(string(line[1:]))
	if err != nil || count > maxReply || depth > maxNested {
		return 0, fmt.Errorf("%w: %q", errProtocol, line)
	}
	if line[0] == '$' {
		if count < 0 {
			return n, nil
		}
		if n+count+2 > len(b) {
			return 0, nil
		}
		return n + count + 2, nil
	}
	for range count {
		length, err := skip(b[n:], depth+1)
		if length == 0 {
			return 0, err
		}
		n += length
	}
	return n, nil
}

// A seal is the last command of a write, PING with a number of its own.
type seal uint64

func (s seal) appendTo(b []byte) []byte {
	b = append(b, "*2\r\n$4\r\nPING\r\n"...)
	return appendInteger(b, int64(s))
}

// parse returns the length of the seal's echo at the start of b, or 0 if its end has
// not arrived yet. Anything but the echo is an error, save that a node which
// refuses all that it is given refuses the seal too.
func (s seal) parse(b []byte) (n int, refused bool, err error) {
	var room [32]byte
	want := appendInteger(room[:0], int64(s))
	if bytes.HasPrefix(b, want) {
		return len(want), false, nil
	}
	line, n := firstLine(b)
	switch {
	case bytes.HasPrefix(want, b), n == 0 && b[0] == '-':
		return 0, false, nil
	case n > 0 && refusesAll(line):
		return n, true, nil
	}
	return 0, false, fmt.Errorf("%w: %q instead of the echo of PING %d", errProtocol, b[:min(len(b), 64)], s)
}

// refusesAll reports whether the line is an error that a node gives to PING as well. No
// error that is about a key is.
func refusesAll(line []byte) bool {
	for _, kind := range []string{"-BUSY ", "-LOADING ", "-MASTERDOWN "} {
		if bytes.HasPrefix(line, []byte(kind)) {
			return true
		}
	}
	return false
}

// firstLine returns the first line of b, never empty, without its end, and its length with it;
// 0 if b holds no whole one. An empty line is returned as one of the type 0.
func firstLine(b []byte) (line []byte, length int) {
	i := bytes.IndexByte(b, '\n')
	if i < 0 {
		return nil, 0
	}
	if i < 2 || b[i-1] != '\r' {
		return []byte{0}, i + 1
	}
	return b[:i-1], i + 1
}

// copied returns the integers for good: the reply's own are used again.
func (r *reply) copied() []int64 { return slices.Clone(r.integers) }
