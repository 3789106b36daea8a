package keys

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unsafe"
)

// digestMark starts the tag of a user who is replaced by a digest. No escaped user
// starts like this, because there a "%" is always followed by 25, 7B or 7D.
const digestMark = "%sha256:"

// UserTag returns the hash tag of all keys of a user: the user as it stands between the
// braces. Its [Slot] is the user's, because it holds no brace. For most users it is
// the user, and nothing is allocated. An empty user is [ErrEmptyUser].
func UserTag(user string) (string, error) {
	if user == "" {
		return "", ErrEmptyUser
	}
	if isLiteral(user) {
		return user, nil
	}
	var buf [3 * MaxUserBytes]byte
	return string(encodeUser(buf[:0], user)), nil
}

// isLiteral tells whether a user is its own tag.
func isLiteral(user string) bool {
	if len(user) > MaxUserBytes {
		return false
	}
	for i := range len(user) {
		if c := user[i]; c == '%' || c == '{' || c == '}' {
			return false
		}
	}
	return true
}

// encodeUser appends the hash tag of a user; see the package comment for its form.
func encodeUser(dst []byte, user string) []byte {
	if len(user) > MaxUserBytes {
		// A conversion would copy the user, as long as a stranger cares to make it, to be
		// hashed once. Sum256 only reads, so the string's own bytes do.
		sum := sha256.Sum256(unsafe.Slice(unsafe.StringData(user), len(user)))
		return hex.AppendEncode(append(dst, digestMark...), sum[:])
	}
	for i := range len(user) {
		switch c := user[i]; c {
		case '%':
			dst = append(dst, "%25"...)
		case '{':
			dst = append(dst, "%7B"...)
		case '}':
			dst = append(dst, "%7D"...)
		default:
			dst = append(dst, c)
		}
	}
	return dst
}

// decodeUser is the inverse of encodeUser, save that a digest stays one: user is
// then its 64 digits. It takes only what encodeUser writes. A laxer reading (%7b,
// %41) would give two keys, perhaps in two slots, to one user.
func decodeUser(tag string) (user string, digest, ok bool) {
	if sum, found := strings.CutPrefix(tag, digestMark); found {
		return sum, true, isDigest(sum)
	}
	decoded := make([]byte, 0, min(len(tag), MaxUserBytes))
	for rest := tag; rest != ""; {
		c, length := rest[0], 1
		switch {
		case c == '{' || c == '}':
			return "", false, false
		case strings.HasPrefix(rest, "%25"):
			length = 3
		case strings.HasPrefix(rest, "%7B"):
			c, length = '{', 3
		case strings.HasPrefix(rest, "%7D"):
			c, length = '}', 3
		case c == '%':
			return "", false, false
		}
		if len(decoded) == MaxUserBytes {
			return "", false, false // so long a user would have been written as a digest
		}
		decoded = append(decoded, c)
		rest = rest[length:]
	}
	return string(decoded), false, len(decoded) > 0
}

// isDigest tells whether s is a SHA-256 in lower-case hexadecimal.
func isDigest(s string) bool {
	if len(s) != hex.EncodedLen(sha256.Size) {
		return false
	}
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}
