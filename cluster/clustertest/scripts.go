package clustertest

import (
	"crypto/sha1"
	"encoding/hex"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A scriptCache is the scripts that one node knows by their digest. It is not
// replicated, and a restart or SCRIPT FLUSH empties it, as in Redis: a client that has
// loaded a script on all nodes can still be answered NOSCRIPT.
type scriptCache struct {
	mu      sync.Mutex
	scripts map[string]*script
}

// A script is a source that compiles.
type script struct {
	sha      string
	readOnly bool // by its first line, "#!lua flags=no-writes"
	run      chunk
}

func (c *scriptCache) get(sha string) *script {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.scripts[strings.ToLower(sha)]
}

func (c *scriptCache) put(s *script) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.scripts == nil {
		c.scripts = map[string]*script{}
	}
	c.scripts[s.sha] = s
}

func (c *scriptCache) flush() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.scripts)
}

// FlushScripts empties one node's script cache, as SCRIPT FLUSH there does.
func (c *Cluster) FlushScripts(node int) { c.nodes[node].cache.flush() }

// compiled keeps each source's compiled form, once for the whole cluster: what a node
// knows is in its scriptCache, this only saves the work.
type compiled struct {
	mu      sync.Mutex
	scripts map[string]*script
}

// compile returns the script of a source, or the error reply for one that does not compile.
func (c *compiled) compile(source string) (*script, string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s, ok := c.scripts[source]; ok {
		return s, ""
	}
	digest := sha1.Sum([]byte(source))
	s := &script{sha: hex.EncodeToString(digest[:])}
	body := source
	if strings.HasPrefix(source, "#!") {
		head, rest, _ := strings.Cut(source, "\n")
		refusal := s.shebang(head)
		if refusal != "" {
			return nil, refusal
		}
		body = "\n" + rest // so that line numbers stay right
	}
	chunk, err := compileChunk(body)
	if err != nil {
		return nil, "ERR Error compiling script (new function): " + err.Error()
	}
	s.run = chunk
	if c.scripts == nil {
		c.scripts = map[string]*script{}
	}
	c.scripts[source] = s
	return s, ""
}

// shebang reads a script's first line, such as "#!lua flags=no-writes".
func (s *script) shebang(line string) string {
	fields := strings.Fields(line)
	if fields[0] != "#!lua" {
		return "ERR Unexpected engine in script shebang: " + strings.TrimPrefix(fields[0], "#!")
	}
	for _, f := range fields[1:] {
		flags, ok := strings.CutPrefix(f, "flags=")
		if !ok {
			return "ERR Unknown lua shebang option: " + f
		}
		for flag := range strings.SplitSeq(flags, ",") {
			switch flag {
			case "no-writes":
				s.readOnly = true
			case "allow-oom", "allow-stale", "allow-cross-slot-keys", "no-cluster", "":
			default:
				return "ERR Unexpected flag in script shebang: " + flag
			}
		}
	}
	return ""
}

// eval answers EVAL, EVALSHA and their read-only kin.
func (s *session) eval(args []string, now time.Time) {
	name := strings.ToUpper(args[0])
	bySHA := strings.HasPrefix(name, "EVALSHA")
	if bySHA && len(args[1]) != 40 {
		s.reply.fail(errNoScript)
		return
	}
	n, err := strconv.Atoi(args[2])
	switch {
	case err != nil:
		s.reply.fail(errNotInteger)
		return
	case n > len(args)-3:
		s.reply.fail(errKeysTooMany)
		return
	case n < 0:
		s.reply.fail(errKeysNegative)
		return
	}
	var sc *script
	if bySHA {
		sc = s.node.cache.get(args[1])
		if sc == nil {
			s.reply.fail(errNoScript)
			return
		}
	} else {
		var refusal string
		if sc, refusal = s.node.cluster.scripts.compile(args[1]); refusal != "" {
			s.reply.fail(refusal)
			return
		}
		s.node.cache.put(sc)
	}
	s.node.shard.interpreter().run(&scriptRun{
		session: s, script: sc, now: now,
		keys: args[3 : 3+n], args: args[3+n:],
		readOnly: sc.readOnly || strings.HasSuffix(name, "_RO"),
	})
}

func (s *session) script(args []string, _ time.Time) {
	cache := &s.node.cache
	switch sub := strings.ToUpper(args[1]); {
	case sub == "LOAD" && len(args) == 3:
		sc, refusal := s.node.cluster.scripts.compile(args[2])
		if refusal != "" {
			s.reply.fail(refusal)
			return
		}
		cache.put(sc)
		s.reply.bulk(sc.sha)
	case sub == "EXISTS" && len(args) >= 3:
		s.reply.array(len(args) - 2)
		for _, sha := range args[2:] {
			known := int64(0)
			if cache.get(sha) != nil {
				known = 1
			}
			s.reply.integer(known)
		}
	case sub == "FLUSH" && len(args) <= 3:
		if len(args) == 3 && !strings.EqualFold(args[2], "SYNC") && !strings.EqualFold(args[2], "ASYNC") {
			s.reply.fail("ERR SCRIPT FLUSH only support SYNC|ASYNC option")
			return
		}
		cache.flush()
		s.reply.ok()
	case sub == "KILL" && len(args) == 2:
		s.reply.fail("NOTBUSY No scripts in execution right now.")
	case sub == "LOAD", sub == "EXISTS", sub == "FLUSH", sub == "KILL":
		s.reply.fail(errArity("script|" + sub))
	default:
		s.reply.fail(errSubcommand("SCRIPT", args[1]))
	}
}
