package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"
)

const (
	// linger is how long the goroutine that reads waits for more to read, or down to half of
	// that. Whoever calls in that time need not start another.
	linger = 20 * time.Millisecond

	// solo is after how many calls in a row, each alone on its way, that goroutine
	// ends, so that the next caller reads for himself.
	solo = 8

	bufferSize = 16 << 10 // bytes of replies, at first
)

// errWoken means that a read ended because of a deadline, not of the connection.
var errWoken = errors.New("woken")

// read deals out replies until nothing has been under way for a while.
func (l *lane) read(k *link) {
	lone, idle := 0, false
	for {
		l.mu.Lock()
		b := k.oldest()
		if k.broken != nil || b == nil && (idle || lone >= solo || k.deserted) {
			l.stopReading(k)
			l.mu.Unlock()
			return
		}
		l.mu.Unlock()
		var err error
		if b != nil {
			if err = k.take(b); err == nil {
				if l.deliver(k) {
					lone++
				} else {
					lone = 0
				}
			}
		} else {
			err = k.lingered()
		}
		idle = b == nil && err == errWoken
		if err != nil && err != errWoken {
			l.mu.Lock()
			l.fail(k, err)
			l.mu.Unlock()
		}
	}
}

// stopReading says that nobody reads any more, with the mutex held.
func (l *lane) stopReading(k *link) {
	k.reading = false
	l.part(k)
}

// part drops a connection that has ended, or is deserted by its last call too, once
// nobody is at it, with the mutex held.
func (l *lane) part(k *link) {
	if !k.reading && !k.writing && (k.broken != nil || k.deserted && len(k.pending) == 0) {
		l.drop(k)
	}
}

// oldest returns the batch whose replies come next, or nil, with the mutex held.
func (k *link) oldest() *batch {
	if len(k.pending) == 0 {
		return nil
	}
	return k.pending[0]
}

// lingered waits a while for something to read.
func (k *link) lingered() error {
	if k.low < len(k.in) {
		return fmt.Errorf("%w: %d bytes unasked", errProtocol, len(k.in)-k.low)
	}
	// Not set anew each time: that costs as much as what is read.
	if now := time.Now(); k.until.Sub(now) < linger/2 {
		k.until = now.Add(linger)
		if err := k.conn.SetReadDeadline(k.until); err != nil {
			return err
		}
	}
	return k.fill()
}

// take reads the replies to a batch, and its seal. After errWoken it may be called
// again, by another, and goes on.
func (k *link) take(b *batch) error {
	for {
		n, err := b.parse(k.in[k.low:])
		if err != nil {
			return err
		}
		if n == 0 {
			if len(k.in)-k.low > maxReply {
				return fmt.Errorf("%w: longer than %d bytes", errProtocol, maxReply)
			}
			if err := k.fill(); err != nil {
				return err
			}
			continue
		}
		k.low += n
		if b.read == len(b.flights) {
			return nil
		}
		b.read++
	}
}

// parse reads what comes next of the batch at the start of in; see [reply.parse].
func (b *batch) parse(in []byte) (int, error) {
	if b.read < len(b.flights) {
		return b.flights[b.read].parse(in)
	}
	n, refused, err := b.seal.parse(in)
	if refused {
		// An error at the seal's place proves the place of errors alone: a call that was
		// counted may not be told that it was refused, nor the other way round.
		for _, f := range b.flights {
			if f.reply.err == nil {
				return 0, fmt.Errorf("%w: replies, and then %q instead of the echo of PING %d", errProtocol, in[:n], b.seal)
			}
		}
	}
	return n, err
}

// parse reads the flight's reply at the start of b; see [reply.parse].
func (f *flight) parse(b []byte) (int, error) {
	before := 0
	if f.asking { // +OK, or an error and then MOVED
		n, err := skip(b, 0)
		if n == 0 {
			return 0, err
		}
		before = n
	}
	n, err := f.reply.parse(b[before:])
	if n == 0 {
		return 0, err
	}
	return before + n, nil
}

// fill reads once from the connection.
func (k *link) fill() error {
	if k.low == len(k.in) {
		k.in, k.low = k.in[:0], 0
	}
	if len(k.in) == cap(k.in) {
		room := k.in[:0]
		if rest := len(k.in) - k.low; 2*rest >= cap(k.in) {
			room = make([]byte, 0, max(bufferSize, 2*cap(k.in)))
		}
		k.in, k.low = append(room, k.in[k.low:]...), 0
	}
	n, err := k.conn.Read(k.in[len(k.in):cap(k.in)])
	k.in = k.in[:len(k.in)+n]
	if n > 0 || err == nil {
		return nil
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		k.until = time.Time{}
		if err := k.conn.SetReadDeadline(time.Time{}); err != nil {
			return err
		}
		return errWoken
	}
	return err
}

// deliver settles the oldest batch, which has been read, and reports whether it was
// a single call and nothing else is under way.
func (l *lane) deliver(k *link) (lone bool) {
	l.mu.Lock()
	b := l.pop(k)
	lone = len(b.flights) == 1 && len(k.pending) == 0 && len(l.queue) == 0
	told := b.flights[:0]
	for _, f := range b.flights {
		if f.state == awaited {
			f.state = settled
			told = append(told, f)
		}
	}
	l.start()
	l.mu.Unlock()
	// Whoever is told may use the flight again, from that moment.
	for _, f := range told {
		f.done <- true
	}
	b.recycle()
	return lone
}

// pop takes the oldest batch out, with the mutex held.
func (l *lane) pop(k *link) *batch {
	b := k.pending[0]
	k.pending[0] = nil
	k.pending = k.pending[1:]
	k.heard = time.Now()
	l.inFlight -= len(b.flights)
	return b
}

// readAlone reads the reply to a flight that its caller has written alone.
func (l *lane) readAlone(ctx context.Context, k *link, b *batch, f *flight) (sent bool, err error) {
	for {
		err = k.take(b)
		if err != errWoken || ctx.Err() != nil || !time.Now().Before(f.deadline) {
			break
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil {
		l.pop(k).recycle()
		f.state = settled
		l.start()
		if len(k.pending) > 0 {
			go l.read(k) // calls that came in the meantime
		} else {
			l.stopReading(k)
		}
		return true, nil
	}
	f.state = left
	if err == errWoken {
		l.suspect(f)
		go l.read(k)
		return f.sent, leaving(ctx)
	}
	l.fail(k, err)
	err, sent = k.broken, f.sent
	l.stopReading(k)
	return sent, err
}
