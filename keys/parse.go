package keys

import (
	"fmt"
	"strings"
	"time"
)

// maxAlgorithmBytes is the longest name of an algorithm.
const maxAlgorithmBytes = 32

// A Key is what a Redis key says, read back by [Layout.Parse]. Two different Redis
// keys of a layout never read as equal Keys, so a Key may be the key of a map.
type Key struct {
	// User is the user as the caller gave it, 1 to [MaxUserBytes] bytes. If Digest is
	// set, it is the SHA-256 of the user in 64 lower-case hexadecimal digits: the user
	// cannot be had back, only recognised.
	User string

	// Digest tells that User is a digest, since the user is over [MaxUserBytes] bytes.
	Digest bool

	// Limit is the name of the limit, "" if it has none.
	Limit string

	// Window is the window number; see [WindowNumber]. It is 0 if Algorithm is set.
	// A key that a person made may hold any int64, so Window times a period can overflow.
	Window int64

	// Period is the length of the window if the key tells it, else 0. Most keys do
	// not: for the plain periods (see the package comment), which are nearly all in use,
	// the reader has to know the limit. In a key such as rl:{alice}:5@720000500 it is
	// 720000.5 s.
	Period time.Duration

	// Algorithm is the last part of a key that has no windows, as in
	// rl:{alice}:login:gcra, and "" in the key of a window.
	Algorithm string
}

// Parse reads a Redis key back. It is the inverse of [Layout.Window], and takes only
// what this layout makes, to the byte: a key with a needless or lower-case escape,
// a leading zero, or a period that should not be there is [ErrForeign] like any
// key of another program. So a key that reads well is the one key of its counter.
//
// Keys without windows are read, and nothing makes them yet: their form is reserved.
// A last part that starts with a lower-case letter is the name of an algorithm: at
// most 32 lower-case letters, digits, "-" and "_". Parse does not know which
// algorithms there are, so rl:{alice}:profile, made by another program under the same
// prefix, reads as a key of the algorithm "profile".
func (l Layout) Parse(key string) (Key, error) {
	tag, rest, ok := l.cut(key)
	if !ok {
		return Key{}, foreign(key, "it does not start with "+quote(l.Prefix()+":{user}:"))
	}
	var k Key
	if k.User, k.Digest, ok = decodeUser(tag); !ok {
		return Key{}, foreign(key, "no user is written like that")
	}
	if colon := strings.LastIndexByte(rest, ':'); colon >= 0 {
		k.Limit, rest = rest[:colon], rest[colon+1:]
		if k.Limit == "" {
			return Key{}, foreign(key, "the name of the limit is empty")
		}
		if err := CheckLimitName(k.Limit); err != nil {
			return Key{}, foreign(key, "no limit has such a name")
		}
	}
	if isAlgorithm(rest) {
		k.Algorithm = rest
		return k, nil
	}
	if k.Window, k.Period, ok = parseWindow(rest); !ok {
		return Key{}, foreign(key, "its last part is neither a window nor an algorithm")
	}
	return k, nil
}

// cut parts a key into the hash tag and what follows the user's part.
func (l Layout) cut(key string) (tag, rest string, ok bool) {
	rest, ok = strings.CutPrefix(key, l.Prefix())
	if !ok {
		return "", "", false
	}
	rest, ok = strings.CutPrefix(rest, ":{")
	if !ok {
		return "", "", false
	}
	return strings.Cut(rest, "}:")
}

// foreign is [ErrForeign] with the key and the reason.
func foreign(key, reason string) error {
	return fmt.Errorf("%w: %s: %s", ErrForeign, quote(key), reason)
}

// isAlgorithm tells whether the last part of a key names an algorithm. A window
// number starts with a digit or a minus, so no part is both.
func isAlgorithm(s string) bool {
	if s == "" || len(s) > maxAlgorithmBytes || s[0] < 'a' || s[0] > 'z' {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '_' {
			return false
		}
	}
	return true
}
