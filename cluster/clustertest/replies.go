package clustertest

import (
	"strconv"
	"strings"
)

// The errors of a Redis 7.0 node that clients act upon, word for word: clients
// match on the first word, people search for the rest.
const (
	errCrossSlot    = "CROSSSLOT Keys in request don't hash to the same slot"
	errTryAgain     = "TRYAGAIN Multiple keys request during rehashing of slot"
	errUnserved     = "CLUSTERDOWN Hash slot not served"
	errClusterDown  = "CLUSTERDOWN The cluster is down"
	errReadOnly     = "READONLY You can't write against a read only replica."
	errNoScript     = "NOSCRIPT No matching script. Please use EVAL."
	errExecAbort    = "EXECABORT Transaction discarded because of previous errors."
	errNotInteger   = "ERR value is not an integer or out of range"
	errSyntax       = "ERR syntax error"
	errKeysTooMany  = "ERR Number of keys can't be greater than number of args"
	errKeysNegative = "ERR Number of keys can't be negative"
)

// A reply is one answer being written, in RESP2 or RESP3.
type reply struct {
	b     []byte
	resp3 bool
}

func (r *reply) head(kind byte, n int64) {
	r.b = append(r.b, kind)
	r.b = strconv.AppendInt(r.b, n, 10)
	r.b = append(r.b, '\r', '\n')
}

var oneLine = strings.NewReplacer("\r", " ", "\n", " ")

func (r *reply) line(kind byte, text string) {
	r.b = append(r.b, kind)
	// A line break in the middle would end the reply early and shift all that follow.
	r.b = append(r.b, oneLine.Replace(text)...)
	r.b = append(r.b, '\r', '\n')
}

func (r *reply) fail(message string) { r.line('-', message) }
func (r *reply) status(s string)     { r.line('+', s) }
func (r *reply) ok()                 { r.status("OK") }
func (r *reply) integer(n int64)     { r.head(':', n) }
func (r *reply) array(n int)         { r.head('*', int64(n)) }

func (r *reply) bulk(s string) {
	r.head('$', int64(len(s)))
	r.b = append(r.b, s...)
	r.b = append(r.b, '\r', '\n')
}

// fields starts a map of n pairs, which RESP2 writes as a flat array.
func (r *reply) fields(n int) {
	if r.resp3 {
		r.head('%', int64(n))
		return
	}
	r.array(2 * n)
}

func (r *reply) null() {
	if r.resp3 {
		r.b = append(r.b, "_\r\n"...)
		return
	}
	r.b = append(r.b, "$-1\r\n"...)
}

// nullArray is EXEC's answer after a WATCHed key changed.
func (r *reply) nullArray() {
	if r.resp3 {
		r.null()
		return
	}
	r.b = append(r.b, "*-1\r\n"...)
}

// verbatim is a text for people, as INFO gives it.
func (r *reply) verbatim(s string) {
	if r.resp3 {
		r.head('=', int64(len(s)+4))
		r.b = append(append(append(r.b, "txt:"...), s...), '\r', '\n')
		return
	}
	r.bulk(s)
}

func errArity(name string) string {
	return "ERR wrong number of arguments for '" + strings.ToLower(name) + "' command"
}

func errSubcommand(parent, name string) string {
	return "ERR unknown subcommand '" + name + "'. Try " + parent + " HELP."
}

func errUnknown(args []string) string {
	var b strings.Builder
	b.WriteString("ERR unknown command '" + clip(args[0]) + "', with args beginning with: ")
	for _, a := range args[1:] {
		if b.Len() > 200 {
			break
		}
		b.WriteString("'" + clip(a) + "' ")
	}
	return b.String()
}

func clip(s string) string { return s[:min(len(s), 128)] }
