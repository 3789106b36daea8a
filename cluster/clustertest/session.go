package clustertest

import (
	"strings"
	"time"
)

// handle checks and runs one command from a connection and leaves its reply in
// s.reply. It returns the fault that swallows the reply, if any. The caller holds
// Cluster.mu, for itself alone if cmd changes the topology.
func (s *session) handle(cmd *command, args []string) *Fault {
	asking := s.asking
	if cmd == nil {
		s.refuse(errUnknown(args))
		return nil
	}
	if !cmd.fits(len(args)) {
		s.refuse(errArity(args[0]))
		return nil
	}
	loss := s.checked(cmd, args)
	// As Redis does it: ASKING counts for one command, or for one transaction.
	if s.tx == nil && asking && cmd.name != "ASKING" {
		s.asking = false
	}
	return loss
}

// refuse answers an error before a command ran, which spoils an open transaction.
func (s *session) refuse(message string) {
	if s.tx != nil {
		s.tx.spoiled = true
	}
	s.reply.fail(message)
}

func (s *session) checked(cmd *command, args []string) *Fault {
	request := Request{Node: s.node.index, Command: cmd.name, Args: args}
	names := cmd.keys(args)
	request.keyed = len(names) > 0
	c := s.node.cluster
	if message, hit := c.faults.error(request); hit {
		s.refuse(message)
		return nil
	}
	shard := s.node.shard
	shard.mu.Lock()
	defer shard.mu.Unlock()
	if cmd.name == "EXEC" && s.tx != nil {
		names = s.tx.keys
	}
	write := cmd.write || cmd.name == "EXEC" && s.tx != nil && s.tx.write
	if r := s.route(names, write); r.refusal != "" && !s.mover(cmd, r) {
		if cmd.name == "EXEC" {
			s.discard()
		}
		s.refuse(r.refusal)
		return nil
	}
	if write && !s.node.isPrimary() {
		s.refuse(errReadOnly)
		return nil
	}
	if s.tx != nil && !cmd.immediate() {
		s.queue(cmd, args, names)
		return nil
	}
	now := s.node.now()
	s.execute(cmd, args, names, now)
	shard.reveal()
	return c.faults.loss(request)
}

// mover says whether this is a MIGRATE of keys of a slot that is on the move: it
// must see what is there, and would be sent to the other node otherwise.
func (s *session) mover(cmd *command, r route) bool {
	_, migrating := s.node.migrating[r.slot]
	_, importing := s.node.importing[r.slot]
	return cmd.name == "MIGRATE" && (migrating || importing)
}

// execute runs a command that may run here: its keys are local and the node may
// write if it writes. The caller holds Cluster.mu and the shard.
func (s *session) execute(cmd *command, args, names []string, now time.Time) {
	s.node.calls[cmd.index].Add(1)
	if run := builtins[cmd.name]; run != nil {
		run(s, args, now)
		return
	}
	s.reply.b = append(s.reply.b, s.node.store(cmd, args, names, now, s.reply.resp3)...)
}

// store lets the shard's store run a command on keys, with the node's clock. The
// reply is good until the next use of the shard.
func (n *node) store(cmd *command, args, names []string, now time.Time, resp3 bool) []byte {
	sh := n.shard
	switch cmd.name {
	case "KEYS", "SCAN", "DBSIZE", "RANDOMKEY":
		// These name no key and touch all.
		names = sh.db.Keys()
	}
	sh.expire(names, now, n.isPrimary())
	if answer, done := n.local(cmd, args, now); done {
		return answer
	}
	rewritten, refusal := absolute(args, now)
	if refusal != "" {
		return []byte("-" + refusal + "\r\n")
	}
	sh.peer.Resp3 = resp3
	answer := sh.dispatch(rewritten)
	sh.peer.Resp3 = false
	if strings.Contains(cmd.name, "EXPIRE") {
		sh.passed(args[1], now)
	}
	if cmd.write {
		sh.touch(names)
	}
	return answer
}

// local answers the commands on the keyspace that need a clock or would do too
// much in a store that all shards share.
func (n *node) local(cmd *command, args []string, now time.Time) ([]byte, bool) {
	var out reply
	switch cmd.name {
	case "TTL":
		left := n.shard.remaining(args[1], now)
		if left > 0 {
			left = (left + 500) / 1000 // rounded, as in Redis
		}
		out.integer(left)
	case "PTTL":
		out.integer(n.shard.remaining(args[1], now))
	case "TIME":
		writeTime(&out, now)
	case "FLUSHALL", "FLUSHDB":
		n.shard.touchAll()
		n.shard.db.FlushDB()
		out.ok()
	case "MOVE":
		out.fail("ERR MOVE is not allowed in cluster mode")
	case "COPY":
		for _, a := range args[3:] {
			if strings.EqualFold(a, "DB") {
				out.fail("ERR Copying to another database is not allowed in cluster mode")
				break
			}
		}
	case "BLPOP", "BRPOP", "BRPOPLPUSH", "BLMOVE", "BZPOPMIN", "BZPOPMAX", "BZMPOP":
		// Waiting would hold the shard's lock.
		out.fail("ERR clustertest: blocking commands are not served")
	case "XREAD", "XREADGROUP":
		for _, a := range args {
			if strings.EqualFold(a, "BLOCK") {
				out.fail("ERR clustertest: blocking commands are not served")
				break
			}
		}
	}
	return out.b, len(out.b) > 0
}
