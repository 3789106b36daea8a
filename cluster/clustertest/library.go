package clustertest

import (
	"math"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/slotlimit/slotlimit/keys"
)

// call runs a command for redis.call and redis.pcall.
func (in *interpreter) call(l *lua.LState) lua.LValue {
	args, refusal := commandWords(l)
	if refusal != "" {
		return in.failure(l, refusal)
	}
	r := in.current
	s, n := r.session, r.session.node
	cmd := lookup(args[0])
	refusal = ""
	switch {
	case cmd == nil:
		refusal = "ERR Unknown Redis command called from script"
	case !cmd.fits(len(args)):
		refusal = "ERR Wrong number of args calling Redis command from script"
	case cmd.noScript:
		refusal = "ERR This Redis command is not allowed from script"
	case cmd.write && r.readOnly:
		refusal = "ERR Write commands are not allowed from read-only scripts."
	case cmd.write && !n.isPrimary():
		refusal = errReadOnly
	}
	if refusal != "" {
		return in.failure(l, refusal)
	}
	names := cmd.keys(args)
	if refusal := r.reach(names, cmd.write); refusal != "" {
		return in.failure(l, refusal)
	}
	var raw []byte
	if run := builtins[cmd.name]; run != nil {
		if !scriptBuiltins[cmd.name] {
			return in.failure(l, "ERR This Redis command is not allowed from script")
		}
		nested := session{node: n, id: s.id, name: s.name}
		run(&nested, args, r.now)
		raw = nested.reply.b
	} else {
		raw = n.store(cmd, args, names, r.now, false)
	}
	v, _ := parseReply(raw)
	if v.kind == '-' {
		return in.failure(l, v.text)
	}
	return toLua(l, v)
}

// The commands without keys that make sense inside a script.
var scriptBuiltins = map[string]bool{"PING": true, "ECHO": true, "SELECT": true, "INFO": true, "PUBLISH": true, "LASTSAVE": true}

// reach says whether a script may touch these keys: they must be local, and in the slot
// of the keys that it declared. A real node of version 7.0 lets a script touch any
// local key; a script that lives on this works until its slots are moved apart, so here
// it never works.
func (r *scriptRun) reach(names []string, write bool) string {
	if len(names) == 0 {
		return ""
	}
	way := r.session.route(names, write)
	if way.refusal != "" {
		return "ERR Script attempted to access a non local key in a cluster node"
	}
	if len(r.keys) > 0 && keys.Slot(r.keys[0]) != way.slot {
		return "ERR Script attempted to access keys that do not hash to the same slot"
	}
	return ""
}

// commandWords collects the arguments of redis.call.
func commandWords(l *lua.LState) ([]string, string) {
	top := l.GetTop()
	if top == 0 {
		return nil, "ERR Please specify at least one argument for this redis lib call"
	}
	args := make([]string, top)
	for i := range args {
		switch v := l.Get(i + 1).(type) {
		case lua.LString:
			args[i] = string(v)
		case lua.LNumber:
			args[i] = number(float64(v))
		default:
			return nil, "ERR Lua redis lib command arguments must be strings or integers"
		}
	}
	return args, ""
}

// number writes a Lua number as Redis passes it to a command: 17 significant digits.
func number(f float64) string {
	if f == math.Trunc(f) && math.Abs(f) < 1e17 {
		return strconv.FormatInt(int64(f), 10)
	}
	return strconv.FormatFloat(f, 'g', 17, 64)
}

// failure is an error as pcall hands it to the script. line is for the report.
func (in *interpreter) failure(l *lua.LState, message string) *lua.LTable {
	t := l.NewTable()
	t.RawSetString("err", lua.LString(message))
	where := strings.TrimPrefix(l.Where(1), chunkName+":")
	if line, _, ok := strings.Cut(where, ":"); ok {
		t.RawSetString("line", lua.LString(line))
	}
	return t
}

// library is the table `redis`.
func (in *interpreter) library() *lua.LTable {
	l := in.state
	t := l.NewTable()
	l.SetFuncs(t, map[string]lua.LGFunction{
		"call": func(l *lua.LState) int {
			v := in.call(l)
			if t, ok := v.(*lua.LTable); ok && t.RawGetString("err") != lua.LNil {
				l.Error(t, 1)
			}
			l.Push(v)
			return 1
		},
		"pcall": func(l *lua.LState) int {
			l.Push(in.call(l))
			return 1
		},
		"log":                func(*lua.LState) int { return 0 },
		"replicate_commands": func(l *lua.LState) int { l.Push(lua.LTrue); return 1 },
		"set_repl":           func(*lua.LState) int { return 0 },
		"breakpoint":         func(l *lua.LState) int { l.Push(lua.LFalse); return 1 },
		"setresp": func(l *lua.LState) int {
			if v := l.CheckInt(1); v != 2 {
				l.RaiseError("clustertest: scripts speak RESP2 only")
			}
			return 0
		},
	})
	l.SetFuncs(t, replyMakers)
	for name, v := range map[string]float64{"LOG_DEBUG": 0, "LOG_VERBOSE": 1, "LOG_NOTICE": 2, "LOG_WARNING": 3, "REDIS_VERSION_NUM": 0x07000f} {
		t.RawSetString(name, lua.LNumber(v))
	}
	t.RawSetString("REDIS_VERSION", lua.LString(version))
	return t
}

// replyMakers are the functions of the table `redis` that need no interpreter.
var replyMakers = map[string]lua.LGFunction{
	"error_reply": func(l *lua.LState) int {
		text := strings.TrimPrefix(l.CheckString(1), "-")
		if !strings.Contains(text, " ") {
			text = "ERR " + text
		}
		t := l.NewTable()
		t.RawSetString("err", lua.LString(text))
		l.Push(t)
		return 1
	},
	"status_reply": func(l *lua.LState) int {
		t := l.NewTable()
		t.RawSetString("ok", lua.LString(l.CheckString(1)))
		l.Push(t)
		return 1
	},
	"sha1hex": func(l *lua.LState) int {
		l.Push(lua.LString(sha1Hex(l.CheckString(1))))
		return 1
	},
}
