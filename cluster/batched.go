package cluster

import (
	"context"
	"net"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// maxRedirects is how many redirects of one sending are followed at once. A
// cluster whose nodes agree gives two at most: MOVED, and from there ASK.
const maxRedirects = 3

// sendBatched sends the call over the lane to its node, and follows redirects.
func (c *Client) sendBatched(ctx context.Context, t *trip) ([]int64, fate, error) {
	l, o := t.lane, t.first
	t.lane = nil // of the first sending alone
	if l == nil {
		var err error
		if l, err = c.laneTo(ctx, t); err != nil {
			return nil, fateOf(err, false), err
		}
		o = l.carry(ctx, t, nil, false, false)
	}
	asText, asking := false, false
	for redirects := 0; ; o = l.carry(ctx, t, nil, asText, asking) {
		said, ok := o.err.(replyError)
		if !ok {
			return o.reply, o.fate, o.err
		}
		switch addr, ask := said.redirect(l.opener.addr()); {
		case o.fate == unknown && !asText:
			asText = true
		case addr != "" && redirects < maxRedirects:
			c.look(ctx, said)
			l, asking = c.fleet.at(addr, &l.opener.options), ask
			redirects++
		default:
			if c.cluster == nil && strings.HasPrefix(string(said), "READONLY") {
				// It was a primary once. A client that asks Sentinel will dial another.
				l.renew(o.link)
			}
			return nil, o.fate, said
		}
	}
}

// An outcome is what became of one sending. The fate is meaningless without an error.
type outcome struct {
	reply []int64
	fate  fate
	err   error
	link  *link // that the reply came by
}

// carry sends the call once over the lane, or waits for the flight if it is under way.
func (l *lane) carry(ctx context.Context, t *trip, f *flight, asText, asking bool) outcome {
	var sent bool
	var err error
	now := t.begun
	t.begun = time.Time{}
	if f != nil {
		sent, err = l.await(ctx, f)
	} else {
		if now.IsZero() {
			now = time.Now()
		}
		if ctx.Err() != nil || !now.Before(t.deadline) {
			return outcome{fate: refused, err: leaving(ctx)}
		}
		f = newFlight(ctx, &t.call, asText, asking, t.patience(now))
		sent, err = l.do(ctx, f, now)
	}
	if err != nil {
		return outcome{fate: fateOfFlight(sent, err), err: err}
	}
	o := outcome{err: f.reply.err, link: f.link}
	if o.err != nil {
		o.fate = fateOf(o.err, true)
	} else {
		o.reply = f.reply.copied()
	}
	f.recycle()
	return o
}

// fateOfFlight says what the error of a flight tells, which is no reply.
func fateOfFlight(sent bool, err error) fate {
	switch {
	case sent:
		return lost
	case ofConnection(err) && err != redis.ErrClosed:
		return postponed
	}
	return fateOf(err, false) // of the greeting
}

// redirect returns where a node says that the call belongs, and whether that is for
// this once (ASK), or "" if it says no such thing. from is the node's own address: a node
// that does not know its host leaves it out.
func (e replyError) redirect(from string) (addr string, ask bool) {
	kind, rest, _ := strings.Cut(string(e), " ")
	if kind != "MOVED" && kind != "ASK" {
		return "", false
	}
	_, addr, _ = strings.Cut(rest, " ")
	colon := strings.LastIndexByte(addr, ':') // an IPv6 address comes without brackets
	if colon < 0 {
		return "", false
	}
	host, port := addr[:colon], addr[colon+1:]
	if host == "" || host == "?" {
		host, _, _ = net.SplitHostPort(from)
	}
	return net.JoinHostPort(strings.Trim(host, "[]"), port), kind == "ASK"
}

// patience is until when a sending waits for its reply. A call that may be sent
// again is, well before it has no time left for that.
func (t *trip) patience(now time.Time) time.Time {
	if again := now.Add(stall + stall/4); t.call.Repeatable && again.Before(t.deadline) {
		return again
	}
	return t.deadline
}

// laneTo returns the lane to the primary that owns the call's slot, as far as is known.
func (c *Client) laneTo(ctx context.Context, t *trip) (*lane, error) {
	if c.cluster == nil {
		return c.fleet.of(c.UniversalClient.(*redis.Client)), nil
	}
	// Who sends again may know better by now.
	if first := !t.begun.IsZero(); first && t.call.Home != "" {
		if l := c.fleet.known(t.call.Home); l != nil {
			return l, nil
		}
	}
	t.begun = time.Time{} // it may wait
	node, err := c.primary(ctx, t.deadline, t.call.Key)
	if err != nil {
		return nil, err
	}
	return c.fleet.of(node), nil
}

// launch puts the call into the queue of its lane, and reports whether that was possible
// without waiting.
func (c *Client) launch(ctx context.Context, t *trip) bool {
	if c.unbatched || t.call.Durable.asked() || t.call.check() != nil || ctx.Err() != nil {
		return false
	}
	l, err := c.laneTo(ctx, t)
	if err != nil {
		return false
	}
	now := time.Now()
	f := newFlight(ctx, &t.call, false, false, t.patience(now))
	if err := l.launch(f, now); err != nil {
		f.recycle()
		return false
	}
	t.lane, t.flight = l, f
	return true
}

// land waits for a call that was launched, and reports whether it has a reply. If not, the rest
// of the trip is for run.
func (c *Client) land(ctx context.Context, t *trip) bool {
	if t.lane == nil {
		return false
	}
	t.first = t.lane.carry(ctx, t, t.flight, false, false)
	return t.first.err == nil
}
