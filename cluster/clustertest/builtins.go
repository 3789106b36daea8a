package clustertest

import (
	"strconv"
	"strings"
	"time"
)

const (
	host    = "127.0.0.1"
	version = "7.0.15"
)

// A builtin is a command that the node answers itself, not its store. It writes
// to s.reply and holds Cluster.mu and the shard.
type builtin func(s *session, args []string, now time.Time)

var builtins map[string]builtin

func init() {
	// Filled here because exec runs commands through this very map.
	builtins = map[string]builtin{
		"ASKING":    func(s *session, _ []string, _ time.Time) { s.asking = true; s.reply.ok() },
		"READONLY":  func(s *session, _ []string, _ time.Time) { s.readOnly = true; s.reply.ok() },
		"READWRITE": func(s *session, _ []string, _ time.Time) { s.readOnly = false; s.reply.ok() },
		"QUIT":      func(s *session, _ []string, _ time.Time) { s.closing = true; s.reply.ok() },
		"PING":      (*session).ping,
		"ECHO":      func(s *session, args []string, _ time.Time) { s.reply.bulk(args[1]) },
		"AUTH":      (*session).auth,
		"SELECT":    (*session).selectDB,
		"RESET":     (*session).reset,
		"HELLO":     (*session).hello,
		"CLIENT":    (*session).client,
		"COMMAND":   func(s *session, args []string, _ time.Time) { describe(&s.reply, args) },
		"CLUSTER":   (*session).cluster,
		"MIGRATE":   (*session).migrate,
		"INFO":      (*session).info,
		"ROLE":      (*session).role,
		"WAIT":      (*session).wait,
		"LASTSAVE":  func(s *session, _ []string, _ time.Time) { s.reply.integer(s.node.started.Unix()) },
		"PUBLISH":   func(s *session, _ []string, _ time.Time) { s.reply.integer(0) },
		"MULTI":     (*session).multi,
		"EXEC":      (*session).exec,
		"DISCARD":   (*session).discardTx,
		"WATCH":     (*session).watch,
		"UNWATCH":   (*session).unwatchAll,
		"SCRIPT":    (*session).script,

		"EVAL":       (*session).eval,
		"EVAL_RO":    (*session).eval,
		"EVALSHA":    (*session).eval,
		"EVALSHA_RO": (*session).eval,
	}
}

func (s *session) ping(args []string, _ time.Time) {
	switch len(args) {
	case 1:
		s.reply.status("PONG")
	case 2:
		s.reply.bulk(args[1])
	default:
		s.reply.fail(errArity("ping"))
	}
}

func (s *session) auth(args []string, _ time.Time) {
	if len(args) == 2 {
		s.reply.fail("ERR AUTH <password> called without any password configured for the default user. " +
			"Are you sure your configuration is correct?")
		return
	}
	if len(args) > 3 {
		s.reply.fail(errSyntax)
		return
	}
	if args[1] != "default" {
		s.reply.fail("WRONGPASS invalid username-password pair or user is disabled.")
		return
	}
	s.reply.ok()
}

func (s *session) selectDB(args []string, _ time.Time) {
	switch n, err := strconv.Atoi(args[1]); {
	case err != nil:
		s.reply.fail(errNotInteger)
	case n != 0:
		s.reply.fail("ERR SELECT is not allowed in cluster mode")
	default:
		s.reply.ok()
	}
}

func (s *session) reset(_ []string, _ time.Time) {
	s.discard()
	s.readOnly, s.asking, s.name = false, false, ""
	s.reply.resp3 = false
	s.reply.status("RESET")
}

func (s *session) hello(args []string, _ time.Time) {
	resp3, name := s.reply.resp3, s.name
	if len(args) > 1 {
		switch args[1] {
		case "2", "3":
			resp3 = args[1] == "3"
		default:
			s.reply.fail("NOPROTO unsupported protocol version")
			return
		}
	}
	for i := 2; i < len(args); {
		switch option := strings.ToUpper(args[i]); {
		case option == "AUTH" && i+2 < len(args):
			if args[i+1] != "default" {
				s.reply.fail("WRONGPASS invalid username-password pair or user is disabled.")
				return
			}
			i += 3
		case option == "SETNAME" && i+1 < len(args):
			name = args[i+1]
			i += 2
		default:
			s.reply.fail("ERR Syntax error in HELLO option '" + args[i] + "'")
			return
		}
	}
	s.reply.resp3, s.name = resp3, name
	s.greet()
}

func (s *session) greet() {
	out := &s.reply
	out.fields(7)
	out.bulk("server")
	out.bulk("redis")
	out.bulk("version")
	out.bulk(version)
	out.bulk("proto")
	proto := int64(2)
	if out.resp3 {
		proto = 3
	}
	out.integer(proto)
	out.bulk("id")
	out.integer(s.id)
	out.bulk("mode")
	out.bulk("cluster")
	out.bulk("role")
	role := "replica"
	if s.node.isPrimary() {
		role = "master"
	}
	out.bulk(role)
	out.bulk("modules")
	out.array(0)
}

func (s *session) client(args []string, _ time.Time) {
	switch sub := strings.ToUpper(args[1]); {
	case sub == "ID" && len(args) == 2:
		s.reply.integer(s.id)
	case sub == "SETNAME" && len(args) == 3:
		if strings.ContainsAny(args[2], " \r\n") {
			s.reply.fail("ERR Client names cannot contain spaces, newlines or special characters.")
			return
		}
		s.name = args[2]
		s.reply.ok()
	case sub == "GETNAME" && len(args) == 2:
		if s.name == "" {
			s.reply.null()
			return
		}
		s.reply.bulk(s.name)
	case sub == "NO-EVICT" && len(args) == 3:
		s.reply.ok()
	default:
		s.reply.fail(errSubcommand("CLIENT", args[1]))
	}
}

func writeTime(out *reply, now time.Time) {
	out.array(2)
	out.bulk(strconv.FormatInt(now.Unix(), 10))
	out.bulk(strconv.Itoa(now.Nanosecond() / 1000))
}
