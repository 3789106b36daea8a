package clustertest

import (
	"bufio"
	"errors"
	"io"
	"strconv"
	"strings"
)

// The largest bulk string and the most arguments that Redis takes by default.
const (
	maxBulk = 512 << 20
	maxArgs = 1 << 20
)

// A protocolError is answered to the client, and then the connection closes, as Redis does it.
type protocolError string

func (e protocolError) Error() string { return "ERR Protocol error: " + string(e) }

// readCommand reads one command: an array of bulk strings, or a line of words
// (an inline command, for people with netcat). It returns no words for an empty line.
func readCommand(r *bufio.Reader) ([]string, error) {
	line, err := readLine(r)
	if err != nil {
		return nil, err
	}
	if !strings.HasPrefix(line, "*") {
		return strings.Fields(line), nil
	}
	n, err := strconv.Atoi(line[1:])
	if err != nil || n > maxArgs {
		return nil, protocolError("invalid multibulk length")
	}
	if n <= 0 {
		return nil, nil
	}
	args := make([]string, 0, min(n, 64))
	for range n {
		arg, err := readBulk(r)
		if err != nil {
			return nil, err
		}
		args = append(args, arg)
	}
	return args, nil
}

func readBulk(r *bufio.Reader) (string, error) {
	line, err := readLine(r)
	if err != nil {
		return "", err
	}
	if !strings.HasPrefix(line, "$") {
		return "", protocolError("expected '$', got '" + clip(line) + "'")
	}
	size, err := strconv.Atoi(line[1:])
	if err != nil || size < 0 || size > maxBulk {
		return "", protocolError("invalid bulk length")
	}
	data := make([]byte, size+2)
	if _, err := io.ReadFull(r, data); err != nil {
		return "", err
	}
	return string(data[:size]), nil
}

func readLine(r *bufio.Reader) (string, error) {
	line, err := r.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		return "", protocolError("too big inline request")
	}
	if err != nil {
		return "", err
	}
	return strings.TrimRight(string(line), "\r\n"), nil
}

// A value is one parsed RESP2 reply. kind is the reply's first byte: '+', '-',
// ':', '$' or '*'. A null has null set.
type value struct {
	kind  byte
	null  bool
	text  string
	whole int64
	items []value
}

// parseReply reads one RESP2 reply from the start of raw and returns what follows it.
// raw comes from miniredis, in this process, so it is not guarded against malice.
func parseReply(raw []byte) (value, []byte) {
	end := 1
	for raw[end] != '\r' {
		end++
	}
	v, head, rest := value{kind: raw[0]}, raw[1:end], raw[end+2:]
	switch v.kind {
	case ':', '$', '*':
		v.whole, _ = strconv.ParseInt(string(head), 10, 64)
		v.null = v.whole < 0 && v.kind != ':'
	default:
		v.text = string(head)
	}
	if v.null {
		return v, rest
	}
	switch v.kind {
	case '$':
		v.text = string(rest[:v.whole])
		rest = rest[v.whole+2:]
	case '*':
		v.items = make([]value, v.whole)
		for i := range v.items {
			v.items[i], rest = parseReply(rest)
		}
	}
	return v, rest
}
