package clustertest

import (
	"strings"
	"time"

	luajson "github.com/alicebob/miniredis/v2/gopher-json"
	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/parse"
)

// chunk is a compiled script. It holds no state: many interpreters run it at once.
type chunk = *lua.FunctionProto

func compileChunk(source string) (chunk, error) {
	tree, err := parse.Parse(strings.NewReader(source), chunkName)
	if err != nil {
		return nil, err
	}
	return lua.Compile(tree, chunkName)
}

const chunkName = "user_script"

// An interpreter is a Lua state that lives as long as its shard. miniredis makes a
// new one for every call, which is most of what a script costs there. Redis too has one
// state for all scripts, and like there its globals cannot be changed, so that no
// script sees what another left.
type interpreter struct {
	state   *lua.LState
	globals *lua.LTable
	env     *lua.LTable // what scripts see: globals, read only
	current *scriptRun
}

// A scriptRun is one call of a script.
type scriptRun struct {
	session  *session
	script   *script
	keys     []string
	args     []string
	now      time.Time // TIME stands still while a script runs
	readOnly bool
}

func (s *shard) interpreter() *interpreter {
	if s.lua == nil {
		s.lua = newInterpreter()
	}
	return s.lua
}

func newInterpreter() *interpreter {
	l := lua.NewState(lua.Options{SkipOpenLibs: true})
	in := &interpreter{state: l, globals: l.NewTable()}
	for name, open := range map[string]lua.LGFunction{
		"_G": lua.OpenBase, lua.TabLibName: lua.OpenTable, lua.StringLibName: lua.OpenString,
		lua.MathLibName: lua.OpenMath, lua.CoroutineLibName: lua.OpenCoroutine,
	} {
		l.Push(l.NewFunction(open))
		l.Push(lua.LString(name))
		l.Call(1, 0)
	}
	l.G.Global.ForEach(func(k, v lua.LValue) { in.globals.RawSet(k, v) })
	for _, name := range []string{"dofile", "loadfile", "print", "module", "require", "newproxy", "getfenv", "setfenv", "rawset", "_GOPHER_LUA_VERSION"} {
		in.globals.RawSetString(name, lua.LNil)
	}
	for _, name := range []string{lua.TabLibName, lua.StringLibName, lua.MathLibName, lua.CoroutineLibName} {
		in.globals.RawSetString(name, in.frozen(in.globals.RawGetString(name).(*lua.LTable)))
	}
	l.Push(l.NewFunction(luajson.Loader))
	l.Call(0, 1)
	in.globals.RawSetString("cjson", in.frozen(l.CheckTable(-1)))
	l.Pop(1)
	in.globals.RawSetString("redis", in.frozen(in.library()))
	in.protect()
	return in
}

const readOnlyTable = "Attempt to modify a readonly table"

// frozen returns a table that reads as t and cannot be written to.
func (in *interpreter) frozen(t *lua.LTable) *lua.LTable {
	l := in.state
	meta := l.NewTable()
	meta.RawSetString("__index", t)
	meta.RawSetString("__newindex", l.NewFunction(func(l *lua.LState) int {
		l.RaiseError(readOnlyTable)
		return 0
	}))
	meta.RawSetString("__metatable", lua.LFalse)
	outer := l.NewTable()
	outer.Metatable = meta
	return outer
}

// protect makes the environment that scripts run in.
func (in *interpreter) protect() {
	l := in.state
	missing := l.NewTable()
	missing.RawSetString("__index", l.NewFunction(func(l *lua.LState) int {
		l.RaiseError("Script attempted to access nonexistent global variable '%s'", l.Get(2).String())
		return 0
	}))
	in.globals.Metatable = missing
	in.env = in.frozen(in.globals)
	in.globals.RawSetString("_G", in.env)
	l.Env = in.env
}

// run runs a script and writes its reply. The caller holds the shard.
func (in *interpreter) run(r *scriptRun) {
	l := in.state
	in.current = r
	in.globals.RawSetString("KEYS", stringTable(l, r.keys))
	in.globals.RawSetString("ARGV", stringTable(l, r.args))
	f := l.NewFunctionFromProto(r.script.run)
	f.Env = in.env
	l.Push(f)
	out := &r.session.reply
	if err := l.PCall(0, 1, nil); err != nil {
		out.fail(in.report(err))
	} else {
		writeLua(l, out, l.Get(-1), 0)
	}
	l.SetTop(0)
	in.current = nil
}

func stringTable(l *lua.LState, list []string) *lua.LTable {
	t := l.CreateTable(len(list), 0)
	for _, s := range list {
		t.Append(lua.LString(s))
	}
	return t
}

// report turns a script's error into the error reply of Redis 7.
func (in *interpreter) report(err error) string {
	sha := in.current.script.sha
	text, line := err.Error(), ""
	if api, ok := err.(*lua.ApiError); ok {
		switch o := api.Object.(type) {
		case *lua.LTable:
			text = lua.LVAsString(o.RawGetString("err"))
			line = lua.LVAsString(o.RawGetString("line"))
			if text == "" {
				text = "ERR unknown error"
			}
			if line == "" {
				return text + " script: " + sha
			}
			return text + " script: " + sha + ", on @" + chunkName + ":" + line + "."
		case lua.LString:
			text = string(o)
		}
	}
	if rest, ok := strings.CutPrefix(text, chunkName+":"); ok {
		line, _, _ = strings.Cut(rest, ":")
	}
	return "ERR " + text + " script: " + sha + ", on @" + chunkName + ":" + line + "."
}
