package cluster

import (
	"context"
	"strconv"
	"sync"
	"time"
)

// A flight is one sending of a call over a [lane].
//
// Until it is settled it belongs to the lane, which reads and writes it with its
// mutex held, or as the one who reads replies. From then on it is the caller's.
type flight struct {
	head     []byte // of the request as it is written: what the script's requests have in common
	request  []byte // the rest of it
	parts    int    // how many strings head and request are
	asking   bool   // ASKING goes before it
	deadline time.Time
	ctx      context.Context // of the caller, nil if that cannot be cancelled

	link  *link // that carries it, once it is written
	state state
	sent  bool  // a byte of it may have left
	alone bool  // its caller reads the reply himself
	end   int   // where its request ends in the write that carries it
	reply reply // the node's, once it is settled without an err
	err   error // of the connection

	// done is told true once the flight is settled, or false once its deadline is over or
	// ctx is done. It has room for the one message that there ever is, so that nobody waits to give it.
	done chan bool
}

// A state says who waits for a flight.
type state int

const (
	awaited state = iota
	settled       // its outcome is known, and done was or will be told
	left          // the caller has gone: nobody may touch it but the lane
)

var flights = sync.Pool{New: func() any { return &flight{done: make(chan bool, 1)} }}

// newFlight returns a flight of the call. As digest or as text, the script is one
// argument.
func newFlight(ctx context.Context, call *Call, asText, asking bool, deadline time.Time) *flight {
	f := flights.Get().(*flight)
	f.deadline, f.asking = deadline, asking
	if ctx.Done() != nil {
		f.ctx = ctx
	}
	f.head = call.Script.byDigest
	if asText {
		f.head = call.Script.byText
	}
	constants := call.constants()
	f.parts = 4 + len(call.Args) + len(constants.args)
	f.request = appendBulk(f.request[:0], call.Key)
	f.request = append(f.request, constants.request...)
	for _, arg := range call.Args {
		f.request = appendInteger(f.request, arg)
	}
	return f
}

// appendTo appends the request.
func (f *flight) appendTo(b []byte) []byte {
	if f.asking {
		b = append(b, "*1\r\n$6\r\nASKING\r\n"...)
	}
	b = append(b, '*')
	b = strconv.AppendInt(b, int64(f.parts), 10)
	b = append(b, '\r', '\n')
	b = append(b, f.head...)
	return append(b, f.request...)
}

// recycle gives back a flight that is settled. One that its caller left is not: it
// may be told once more that its time is over.
func (f *flight) recycle() {
	const most = 4 << 10 // few keys are that long
	if cap(f.request) > most {
		f.request = nil
	}
	f.ctx, f.link, f.state, f.sent, f.alone, f.err = nil, nil, awaited, false, false, nil
	f.reply.clear()
	flights.Put(f)
}

// appendBulk appends an argument as RESP has it.
func appendBulk(b []byte, s string) []byte {
	b = append(b, '$')
	b = strconv.AppendInt(b, int64(len(s)), 10)
	b = append(b, '\r', '\n')
	b = append(b, s...)
	return append(b, '\r', '\n')
}

// appendInteger appends a number as an argument. Written first and measured then, as its
// digits are at most 20, and so their number has one digit or two.
func appendInteger(b []byte, n int64) []byte {
	if 0 <= n && n <= 9 {
		return append(b, '$', '1', '\r', '\n', byte('0'+n), '\r', '\n')
	}
	var digits [20]byte
	d := strconv.AppendInt(digits[:0], n, 10)
	b = append(b, '$')
	b = strconv.AppendInt(b, int64(len(d)), 10)
	b = append(b, '\r', '\n')
	b = append(b, d...)
	return append(b, '\r', '\n')
}

// leaving says why a caller goes before the reply is there.
func leaving(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return context.DeadlineExceeded
}
