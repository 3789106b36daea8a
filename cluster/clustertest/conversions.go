package clustertest

import (
	"crypto/sha1"
	"encoding/hex"
	"strconv"

	lua "github.com/yuin/gopher-lua"
)

// maxDepth is how deep a script may nest tables in its reply. Redis too has a limit.
const maxDepth = 100

// writeLua writes what a script returned, by Redis's rules: numbers lose their
// fraction, false and nil are null, a table ends at its first nil.
func writeLua(l *lua.LState, out *reply, v lua.LValue, depth int) {
	if depth > maxDepth {
		out.fail("ERR reached lua stack limit")
		return
	}
	switch t := v.(type) {
	case lua.LString:
		out.bulk(string(t))
	case lua.LNumber:
		out.integer(int64(t))
	case lua.LBool:
		if t {
			out.integer(1)
			return
		}
		out.null()
	case *lua.LTable:
		writeTable(l, out, t, depth)
	default:
		out.null()
	}
}

func writeTable(l *lua.LState, out *reply, t *lua.LTable, depth int) {
	if s, ok := t.RawGetString("err").(lua.LString); ok {
		out.fail(string(s))
		return
	}
	if s, ok := t.RawGetString("ok").(lua.LString); ok {
		out.status(string(s))
		return
	}
	if f, ok := t.RawGetString("double").(lua.LNumber); ok {
		text := strconv.FormatFloat(float64(f), 'g', 17, 64)
		if out.resp3 {
			out.line(',', text)
			return
		}
		out.bulk(text)
		return
	}
	n := 0
	for t.RawGetInt(n+1) != lua.LNil {
		n++
	}
	out.array(n)
	for i := range n {
		writeLua(l, out, t.RawGetInt(i+1), depth+1)
	}
}

// toLua turns a command's reply into what redis.call returns: null is false, a
// status a table with the field ok.
func toLua(l *lua.LState, v value) lua.LValue {
	switch {
	case v.null:
		return lua.LFalse
	case v.kind == ':':
		return lua.LNumber(v.whole)
	case v.kind == '$':
		return lua.LString(v.text)
	case v.kind == '+', v.kind == '-':
		field := map[byte]string{'+': "ok", '-': "err"}[v.kind]
		t := l.NewTable()
		t.RawSetString(field, lua.LString(v.text))
		return t
	}
	t := l.CreateTable(len(v.items), 0)
	for i, item := range v.items {
		t.RawSetInt(i+1, toLua(l, item))
	}
	return t
}

func sha1Hex(s string) string {
	digest := sha1.Sum([]byte(s))
	return hex.EncodeToString(digest[:])
}
