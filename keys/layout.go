package keys

import (
	"fmt"
	"strings"
	"time"
)

// Limits of the parts of a key, in bytes. Redis itself would take far more; these
// bound what one user can cost in memory, since each counter repeats them.
const (
	// MaxPrefixBytes is the longest prefix.
	MaxPrefixBytes = 64
	// MaxLimitNameBytes is the longest name of a limit.
	MaxLimitNameBytes = 64
	// MaxUserBytes is the longest user, before escaping, that is written out. A
	// longer one is replaced by a digest.
	MaxUserBytes = 128
)

// DefaultPrefix is the prefix of the zero [Layout].
const DefaultPrefix = "rl"

// maxKeyBytes is the length of the longest key: every byte of the user escaped,
// and the longest window number and period.
const maxKeyBytes = MaxPrefixBytes + len(":{") + 3*MaxUserBytes + len("}:") +
	MaxLimitNameBytes + len(":") + len("-9223372036854775808") + len("@") + len("9223372036854")

// A Layout makes the Redis keys of one prefix and reads them back. Two layouts
// with different prefixes never make the same key, so services that share a
// cluster are kept apart by it.
//
// The zero value is ready to use and has the prefix [DefaultPrefix]; [New] makes
// others. Most callers want [Layout.Window], or on a hot path [UserTag],
// [Layout.AppendUser] and [AppendWindow]. Layouts are comparable, equal if their prefixes
// are, and safe for concurrent use.
type Layout struct {
	prefix string // "" is DefaultPrefix, so that the zero value and New("rl") are equal
}

// New returns the layout whose keys start with prefix and a colon. An empty prefix
// means [DefaultPrefix]. A prefix over [MaxPrefixBytes] bytes, or with a brace or a
// control byte (below 0x20, or 0x7F), is refused with [ErrPrefix].
func New(prefix string) (Layout, error) {
	if len(prefix) > MaxPrefixBytes {
		return Layout{}, fmt.Errorf("%w: %d bytes, at most %d are allowed: %s",
			ErrPrefix, len(prefix), MaxPrefixBytes, quote(prefix))
	}
	for i := range len(prefix) {
		if c := prefix[i]; c == '{' || c == '}' || isControl(c) {
			return Layout{}, fmt.Errorf("%w: %q holds %q; braces and control bytes are not allowed",
				ErrPrefix, prefix, c)
		}
	}
	if prefix == DefaultPrefix {
		prefix = ""
	}
	return Layout{prefix: prefix}, nil
}

// Prefix returns what the keys start with, without the colon; never empty.
func (l Layout) Prefix() string {
	if l.prefix == "" {
		return DefaultPrefix
	}
	return l.prefix
}

// User returns what all keys of a user start with, the final colon included:
// "rl:{alice}:". It holds the whole hash tag, so its [Slot] is the user's. An empty
// user is [ErrEmptyUser]; any other sequence of bytes is good.
func (l Layout) User(user string) (string, error) {
	if user == "" {
		return "", ErrEmptyUser
	}
	var buf [maxKeyBytes]byte
	return string(l.appendUser(buf[:0], user)), nil
}

// Window returns the key that counts a user's attempts under one limit in one
// window, see [WindowNumber]. limit is the name of the limit, or "" if it has none.
// It fails with [ErrEmptyUser], [ErrLimitName] or [ErrPeriod], and allocates nothing
// but the key.
func (l Layout) Window(user, limit string, period time.Duration, window int64) (string, error) {
	if user == "" {
		return "", ErrEmptyUser
	}
	if err := CheckLimitName(limit); err != nil {
		return "", err
	}
	if err := CheckPeriod(period); err != nil {
		return "", err
	}
	var buf [maxKeyBytes]byte
	return string(AppendWindow(l.appendUser(buf[:0], user), limit, period, window)), nil
}

// AppendUser appends to dst what [Layout.User] returns for the user whose tag this is,
// see [UserTag], and returns the longer slice, as append does.
func (l Layout) AppendUser(dst []byte, tag string) []byte {
	return append(append(l.appendPrefix(dst), tag...), "}:"...)
}

// appendUser appends what [Layout.User] returns for a user that is not empty.
func (l Layout) appendUser(dst []byte, user string) []byte {
	return append(encodeUser(l.appendPrefix(dst), user), "}:"...)
}

// appendPrefix appends what stands before the tag.
func (l Layout) appendPrefix(dst []byte) []byte {
	return append(append(dst, l.Prefix()...), ":{"...)
}

// CheckLimitName tells whether a limit may have this name, with an error that is
// [ErrLimitName] if not. The empty name, that of an unnamed limit, is good. A name
// has at most [MaxLimitNameBytes] bytes, and none of these:
//
//   - braces, so that no one who looks at a key mistakes the hash tag;
//   - "=" and "/", which part the name, the rate and the period where a limit is
//     written as text;
//   - "@", which parts a window number and its period;
//   - spaces and control bytes (below 0x20, or 0x7F), which break the tools that
//     print a key a line.
//
// Colons are good, as are letters of any script.
func CheckLimitName(name string) error {
	if len(name) > MaxLimitNameBytes {
		return fmt.Errorf("%w: %d bytes, at most %d are allowed: %s",
			ErrLimitName, len(name), MaxLimitNameBytes, quote(name))
	}
	for i := range len(name) {
		if c := name[i]; strings.IndexByte("{}=/@ ", c) >= 0 || isControl(c) {
			return fmt.Errorf("%w: %q holds %q; braces, =, /, @, spaces and control bytes are not allowed",
				ErrLimitName, name, c)
		}
	}
	return nil
}

// isControl tells whether c is a control character of ASCII.
func isControl(c byte) bool { return c < 0x20 || c == 0x7f }

// quote quotes the start of a value that may be very long, for an error message.
func quote(s string) string {
	const most = 100
	if len(s) <= most {
		return fmt.Sprintf("%q", s)
	}
	return fmt.Sprintf("%q... (%d bytes)", s[:most], len(s))
}
