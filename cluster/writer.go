package cluster

import (
	"context"
	"runtime"
	"time"
)

// write writes the queue until it is empty.
func (l *lane) write(k *link) {
	for {
		// Callers that are about to join do so first: their calls leave with this write.
		runtime.Gosched()
		l.mu.Lock()
		if !l.due(k) || !l.load(k) {
			k.writing = false
			l.part(k)
			l.mu.Unlock()
			return
		}
		if !k.reading {
			k.reading = true
			go l.read(k)
		}
		l.mu.Unlock()
		if n, err := k.conn.Write(k.out); err != nil {
			l.cut(k, n, err)
		}
	}
}

// load moves flights from the queue to the writer's buffer, with the mutex held,
// and reports whether there were any.
func (l *lane) load(k *link) bool {
	if k.broken != nil || k.deserted || len(l.queue) == 0 {
		return false
	}
	k.begin()
	seen, added, now := 0, 0, time.Now()
	var b *batch
	for _, f := range l.queue {
		if added == maxWrite {
			break
		}
		seen++
		if f.state != awaited { // it left before it was written, so nothing counts
			l.inFlight--
			continue
		}
		added++
		if b == nil {
			b = k.newBatch(now)
		}
		k.add(b, f)
		if len(b.flights) == maxBatch {
			k.finish(b)
			b = nil
		}
	}
	if b != nil {
		k.finish(b)
	}
	rest := copy(l.queue, l.queue[seen:])
	clear(l.queue[rest:])
	l.queue = l.queue[:rest]
	if added == 0 {
		k.writes-- // nothing is written, and nothing left in the queue
		return false
	}
	l.arm(now.Add(l.patience), now)
	return true
}

// begin begins another write.
func (k *link) begin() {
	k.writes++
	k.out = k.out[:0]
}

func (k *link) newBatch(now time.Time) *batch {
	k.seals++
	b := batches.Get().(*batch)
	b.seal, b.write, b.at = k.seals, k.writes, now
	k.pending = append(k.pending, b)
	return b
}

// add puts a flight into the batch, and its request into the buffer.
func (k *link) add(b *batch, f *flight) {
	k.out = f.appendTo(k.out)
	f.link, f.sent, f.end = k, true, len(k.out)
	b.flights = append(b.flights, f)
}

func (k *link) finish(b *batch) { k.out = b.seal.appendTo(k.out) }

// cut ends a connection of whose last write only n bytes left. A server runs no
// command without its end, so those whose end did not leave did not run.
func (l *lane) cut(k *link, n int, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, b := range k.pending {
		if b.write == k.writes {
			for _, f := range b.flights {
				if f.state == awaited {
					f.sent = f.end <= n
				}
			}
		}
	}
	l.fail(k, err)
}

// alone sends a flight when nothing is under way: its caller writes, and reads the
// reply, so that nobody has to be woken for either. The write does not block: the
// other side has taken all that was written before. The mutex is held, and released.
func (l *lane) alone(ctx context.Context, k *link, f *flight, now time.Time) (sent bool, err error) {
	k.begin()
	b := k.newBatch(now)
	k.add(b, f)
	k.finish(b)
	l.arm(now.Add(l.patience), now)
	k.writing, k.reading, f.alone = true, true, true
	l.mu.Unlock()

	// Not by the lane's timer: one that soon makes each wait for the network a fifth longer.
	if f.ctx != nil {
		stop := context.AfterFunc(f.ctx, k.wake)
		defer stop()
	}

	if n, err := k.conn.Write(k.out); err != nil {
		l.cut(k, n, err)
	}
	l.mu.Lock()
	k.writing = false
	l.start()
	l.mu.Unlock()
	return l.readAlone(ctx, k, b, f)
}
