package clustertest

import (
	"bufio"
	"bytes"
	"strconv"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
)

// A shard is the keys of one primary and its replica. Both nodes use the same
// store: that is replication without delay and without loss. What a node has of its
// own, its clock and its script cache, is not here.
//
// The store is one of miniredis's numbered databases, with a second one where keys
// wait while a replica must not see them (see conceal). miniredis's own clock
// stands still at the Unix epoch, so that the TTL it keeps for a key is the instant
// of expiry, in Unix time. This is what makes the clocks cheap: no TTL ever has to be
// counted down, and a key costs nothing until a command names it.
type shard struct {
	index int
	db    *miniredis.RedisDB
	data  *miniredis.Miniredis

	mu        sync.Mutex // held while a command runs; after Cluster.mu
	peer      *server.Peer
	buffer    *bytes.Buffer
	lua       *interpreter
	concealed []string
	watched   map[string][]*session
}

func (c *Cluster) openStore() error {
	c.data = miniredis.NewMiniRedis()
	c.data.SetTime(time.Unix(0, 0))
	// Dial starts miniredis without a listener; the nodes here have their own.
	nc, err := c.data.Dial()
	if err != nil {
		return err
	}
	nc.Close()
	for i := range c.shards {
		s := &shard{index: i, db: c.data.DB(i), data: c.data, buffer: new(bytes.Buffer), watched: map[string][]*session{}}
		s.peer = server.NewPeer(bufio.NewWriter(s.buffer))
		s.dispatch([]string{"SELECT", strconv.Itoa(i)})
		c.shards[i] = s
	}
	return nil
}

// dispatch lets miniredis run a command and returns its reply in RESP2 or RESP3,
// whichever s.peer is set to. The bytes are good until the next dispatch.
func (s *shard) dispatch(args []string) []byte {
	s.buffer.Reset()
	s.data.Server().Dispatch(s.peer, args)
	s.peer.Flush()
	return s.buffer.Bytes()
}

// Database of the keys that a replica must not see now.
func (s *shard) hidden() int { return s.index + Shards }

// has says whether a key is there by this clock.
func (s *shard) has(key string, now time.Time) bool {
	return s.db.Exists(key) && !s.expired(key, now)
}

// expiry returns the instant a key expires at, in Unix milliseconds, or 0 for never.
func (s *shard) expiry(key string) int64 { return s.db.TTL(key).Milliseconds() }

// expired says whether a key's time is over: later than its expiry, as in Redis,
// where a key is still there in the very millisecond.
func (s *shard) expired(key string, now time.Time) bool {
	at := s.expiry(key)
	return at != 0 && now.UnixMilli() > at
}

// expire makes the expired ones of these keys absent. A primary deletes them; a
// replica, whose clock may be ahead of its primary's, only overlooks them.
func (s *shard) expire(names []string, now time.Time, primary bool) {
	for _, key := range names {
		if !s.expired(key, now) {
			continue
		}
		if primary {
			s.db.Del(key)
			continue
		}
		s.conceal(key)
	}
}

// conceal moves a key out of sight until reveal.
func (s *shard) conceal(key string) {
	s.dispatch([]string{"MOVE", key, strconv.Itoa(s.hidden())})
	s.concealed = append(s.concealed, key)
}

func (s *shard) reveal() {
	if len(s.concealed) == 0 {
		return
	}
	s.dispatch([]string{"SELECT", strconv.Itoa(s.hidden())})
	for _, key := range s.concealed {
		s.dispatch([]string{"MOVE", key, strconv.Itoa(s.index)})
	}
	s.dispatch([]string{"SELECT", strconv.Itoa(s.index)})
	s.concealed = s.concealed[:0]
}

// transfer moves a key with value and expiry to another shard, over one that is
// there. The caller holds Cluster.mu for itself alone.
func (s *shard) transfer(key string, to *shard) bool {
	to.db.Del(key)
	return string(s.dispatch([]string{"MOVE", key, strconv.Itoa(to.index)})) == ":1\r\n"
}
