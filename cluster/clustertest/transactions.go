package clustertest

import (
	"slices"
	"time"
)

// A transaction is what MULTI collects until EXEC.
type transaction struct {
	queued  []queued
	keys    []string
	write   bool
	spoiled bool // a command was refused, EXEC will be too
}

type queued struct {
	cmd  *command
	args []string
	keys []string
}

// immediate says whether a command runs at once inside MULTI.
func (c *command) immediate() bool {
	switch c.name {
	case "MULTI", "EXEC", "DISCARD", "WATCH", "QUIT", "RESET":
		return true
	}
	return false
}

func (s *session) queue(cmd *command, args, names []string) {
	s.tx.queued = append(s.tx.queued, queued{cmd, args, names})
	s.tx.keys = append(s.tx.keys, names...)
	s.tx.write = s.tx.write || cmd.write
	s.reply.status("QUEUED")
}

func (s *session) multi(_ []string, _ time.Time) {
	if s.tx != nil {
		s.reply.fail("ERR MULTI calls can not be nested")
		return
	}
	s.tx = &transaction{}
	s.reply.ok()
}

// exec runs what MULTI collected. That all keys are local was checked before.
func (s *session) exec(_ []string, now time.Time) {
	tx, changed := s.tx, s.changed
	s.discard()
	switch {
	case tx == nil:
		s.reply.fail("ERR EXEC without MULTI")
		return
	case tx.spoiled:
		s.reply.fail(errExecAbort)
		return
	case changed:
		s.reply.nullArray()
		return
	}
	s.reply.array(len(tx.queued))
	for _, q := range tx.queued {
		s.execute(q.cmd, q.args, q.keys, now)
	}
}

func (s *session) discardTx(_ []string, _ time.Time) {
	if s.tx == nil {
		s.reply.fail("ERR DISCARD without MULTI")
		return
	}
	s.discard()
	s.reply.ok()
}

func (s *session) watch(args []string, now time.Time) {
	if s.tx != nil {
		s.reply.fail("ERR WATCH inside MULTI is not allowed")
		return
	}
	sh := s.node.shard
	sh.expire(args[1:], now, s.node.isPrimary())
	for _, key := range args[1:] {
		if !slices.Contains(s.watching, key) {
			s.watching = append(s.watching, key)
			sh.watched[key] = append(sh.watched[key], s)
		}
	}
	s.reply.ok()
}

func (s *session) unwatchAll(_ []string, _ time.Time) {
	s.unwatch()
	s.reply.ok()
}

// discard ends a transaction and what was watched for it.
func (s *session) discard() {
	s.tx = nil
	s.unwatch()
}

func (s *session) unwatch() {
	watched := s.node.shard.watched
	for _, key := range s.watching {
		watched[key] = slices.DeleteFunc(watched[key], func(o *session) bool { return o == s })
		if len(watched[key]) == 0 {
			delete(watched, key)
		}
	}
	s.watching, s.changed = nil, false
}

// forget takes a session that has ended off its shard's books.
func (s *session) forget() {
	s.node.shard.mu.Lock()
	defer s.node.shard.mu.Unlock()
	s.unwatch()
}

// touch tells the sessions that watch these keys.
func (s *shard) touch(names []string) {
	if len(s.watched) == 0 {
		return
	}
	for _, key := range names {
		for _, watcher := range s.watched[key] {
			watcher.changed = true
		}
	}
}

func (s *shard) touchAll() {
	for key := range s.watched {
		s.touch([]string{key})
	}
}
