package keys

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// hardUsers are the users that other encodings get wrong. Each is not equal to any other.
var hardUsers = []string{
	"alice",
	"{", "}", "{}", "}{", "{}{", "{{}}",
	"{a}b", "a}b{c", "{a}", "a}", "{a",
	"%", "%%", "%7B", "%7D", "%25", "%257B", "%7b", "%2", "%s",
	"a:b", ":", "a}:b", "}:", "a}:5", "5",
	"rl:{alice}:5",
	" ", "\x00", "\n", "a\r\nb", "*", "a?[b]\\",
	"\xff", "\xff\xfe", "a\x80", "\xc3", "é", "用户",
	strings.Repeat("x", MaxUserBytes-1),
	strings.Repeat("x", MaxUserBytes),
	strings.Repeat("x", MaxUserBytes+1),
	strings.Repeat("{", MaxUserBytes),
	strings.Repeat("{", MaxUserBytes+1),
	strings.Repeat("\xff", MaxUserBytes+1),
	strings.Repeat("x", 64<<10),
	strings.Repeat("x", 64<<10-1) + "y",
	strings.Repeat("}", 64<<10),
	// Literal users that look like the digest of the 64 KiB user above.
	digestOfLongUser,
	"sha256:" + digestOfLongUser,
	"%sha256:" + digestOfLongUser,
	"%25sha256:" + digestOfLongUser,
}

// digestOfLongUser is the SHA-256 of 65536 times "x", as sha256sum prints it.
const digestOfLongUser = "1f8745f0d2d1387ec1af2211a3cf417b2e9e885e853472649c1d979d0e9370e3"

// hardNames are names of limits that are good but unusual, the empty one included.
var hardNames = []string{"", "login", ":", "a:b", ":a", "a:", "5", "-5", "gcra", "%7B", "é", "\xff", strings.Repeat("n", MaxLimitNameBytes)}

// hardPeriods stand on both sides of every edge of the plain periods.
var hardPeriods = []time.Duration{
	time.Millisecond, 2 * time.Millisecond, 250 * time.Millisecond, time.Second,
	10*time.Second - time.Millisecond, 10 * time.Second, 10*time.Second + time.Millisecond, 11 * time.Second, time.Minute,
	10*time.Minute - time.Second,
	10*time.Minute - time.Millisecond, 10 * time.Minute, 10*time.Minute + time.Millisecond, 11 * time.Minute,
	time.Hour, time.Hour + time.Second, 24 * time.Hour, 24*time.Hour + 4*time.Second,
	48*time.Hour - time.Minute, 48 * time.Hour, 48*time.Hour + time.Millisecond, 48*time.Hour + time.Minute,
	366 * 24 * time.Hour, 9223372036854 * time.Millisecond,
}

// newRand returns a source that is the same in each run, so a failure can be repeated.
func newRand() *rand.Rand { return rand.New(rand.NewPCG(3, 16384)) }

// randomUser makes a user of 1 to 200 bytes, half of them from the bytes that matter.
func randomUser(r *rand.Rand) string {
	const special = "{}%:257BDbd@"
	user := make([]byte, 1+r.IntN(200))
	for i := range user {
		if r.IntN(2) == 0 {
			user[i] = special[r.IntN(len(special))]
		} else {
			user[i] = byte(r.IntN(256))
		}
	}
	return string(user)
}

// randomName makes a good name of a limit, at times the empty one.
func randomName(r *rand.Rand) string {
	const good = "abcz059:-_%.\xff"
	name := make([]byte, r.IntN(8))
	for i := range name {
		name[i] = good[r.IntN(len(good))]
	}
	return string(name)
}

// randomPeriod makes a good period; short, plain and odd ones are about equally many.
func randomPeriod(r *rand.Rand) time.Duration {
	switch r.IntN(5) {
	case 0:
		return time.Duration(1+r.Int64N(10_000)) * time.Millisecond
	case 3:
		return time.Duration(1+r.Int64N(600)) * time.Second
	case 1:
		return time.Duration(1+r.Int64N(2880)) * time.Minute
	case 2:
		return time.Duration(1+r.Int64N(366*86400_000)) * time.Millisecond
	default:
		return hardPeriods[r.IntN(len(hardPeriods))]
	}
}

// mustNew is New for a prefix that the test knows to be good.
func mustNew(tb testing.TB, prefix string) Layout {
	tb.Helper()
	layout, err := New(prefix)
	if err != nil {
		tb.Fatalf("New(%q): %v", prefix, err)
	}
	return layout
}

// userPart is Layout.User for a user that the test knows to be good.
func userPart(tb testing.TB, layout Layout, user string) string {
	tb.Helper()
	part, err := layout.User(user)
	if err != nil {
		tb.Fatalf("User(%s): %v", quote(user), err)
	}
	return part
}
