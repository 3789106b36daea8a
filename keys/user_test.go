package keys

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestUserTag(t *testing.T) {
	long := strings.Repeat("x", 64<<10)
	for user, want := range map[string]string{
		"alice":                  "alice",
		"}":                      "%7D",
		"{":                      "%7B",
		"{}":                     "%7B%7D",
		"{a}b":                   "%7Ba%7Db",
		"a}b{c":                  "a%7Db%7Bc",
		"%7B":                    "%257B",
		"%":                      "%25",
		"a:b":                    "a:b",
		" \x00\n":                " \x00\n",
		"\xff\xfe":               "\xff\xfe",
		"用户":                     "用户",
		strings.Repeat("x", 128): strings.Repeat("x", 128),
		strings.Repeat("{", 128): strings.Repeat("%7B", 128),
		// printf 'x%.0s' $(seq 129) | sha256sum
		strings.Repeat("x", 129):      "%sha256:0ec9eb33e74510bcdd1f2ea55206e82f21649c5c2becbf2b433eb475b34c01bd",
		long:                          "%sha256:" + digestOfLongUser,
		digestOfLongUser:              digestOfLongUser,
		"%sha256:" + digestOfLongUser: "%25sha256:" + digestOfLongUser,
	} {
		if got := userPart(t, Layout{}, user); got != "rl:{"+want+"}:" {
			t.Errorf("User(%s) = %s, want the tag %q", quote(user), got, want)
		}
		tag, err := UserTag(user)
		if tag != want || err != nil {
			t.Errorf("UserTag(%s) = %s, %v, want %q", quote(user), tag, err, want)
		}
		if got := string(Layout{}.AppendUser(nil, tag)); got != userPart(t, Layout{}, user) {
			t.Errorf("AppendUser of the tag of %s = %s, want what User returns", quote(user), got)
		}
	}
}

// A user with nothing to escape is his own tag.
func TestUserTagAllocates(t *testing.T) {
	if _, err := UserTag(""); !errors.Is(err, ErrEmptyUser) {
		t.Errorf("the tag of nobody: %v, want ErrEmptyUser", err)
	}
	for user, want := range map[string]float64{"user-12345": 0, "{user}": 1} {
		if allocs := testing.AllocsPerRun(100, func() { UserTag(user) }); allocs != want {
			t.Errorf("UserTag(%q): %v allocations, want %v", user, allocs, want)
		}
	}
}

func TestHardUsersAreDistinct(t *testing.T) {
	users := make(map[string]string)
	for _, user := range hardUsers {
		part := userPart(t, Layout{}, user)
		if other, found := users[part]; found {
			t.Errorf("the users %s and %s share %s", quote(other), quote(user), part)
		}
		users[part] = user
	}
}

// TestAllShortUsersAreDistinct makes the keys of every user of up to 5 of the bytes
// that escapes are made of, and reads each back.
func TestAllShortUsersAreDistinct(t *testing.T) {
	const alphabet = "{}%257BD"
	parts := make(map[string]string)
	users := []string{""}
	for range 5 {
		var longer []string
		for _, start := range users {
			for i := range len(alphabet) {
				longer = append(longer, start+alphabet[i:i+1])
			}
		}
		users = longer
		for _, user := range users {
			part := userPart(t, Layout{}, user)
			if other, found := parts[part]; found {
				t.Fatalf("the users %q and %q share %q", other, user, part)
			}
			parts[part] = user
			if k, err := (Layout{}).Parse(part + "5"); err != nil || k.User != user || k.Digest {
				t.Fatalf("user %q is read back as %+v, %v", user, k, err)
			}
		}
	}
	if want := 8 + 64 + 512 + 4096 + 32768; len(parts) != want {
		t.Errorf("%d users were tried, want %d", len(parts), want)
	}
}

// checkSameSlot fails unless every key of a user has the encoded user for its tag
// and so one slot.
func checkSameSlot(t *testing.T, layout Layout, user, name string, period time.Duration, window int64) {
	t.Helper()
	part := userPart(t, layout, user)
	tag := string(encodeUser(nil, user))
	if tag == "" || strings.ContainsAny(tag, "{}") {
		t.Fatalf("user %s is written %q: empty, or with a brace", quote(user), tag)
	}
	want := Slot(part)
	for _, key := range []string{
		part,
		string(AppendWindow([]byte(part), name, period, window)),
		string(AppendWindow([]byte(part), "", period, window)),
		string(AppendWindow([]byte(part), "other", time.Minute, window+1)),
		part + name + ":gcra",
	} {
		if Tag(key) != tag || Slot(key) != want || bitwiseSlot(key) != want {
			t.Errorf("key %s of user %s has the tag %q and slot %d (bit by bit %d); want %q and %d",
				quote(key), quote(user), Tag(key), Slot(key), bitwiseSlot(key), tag, want)
		}
	}
}

func TestKeysOfAUserShareASlot(t *testing.T) {
	for _, user := range hardUsers {
		for _, name := range hardNames {
			checkSameSlot(t, mustNew(t, "a:%7B"), user, name, 25*time.Hour+time.Second, 5)
		}
	}
	r := newRand()
	for range 5000 {
		checkSameSlot(t, Layout{}, randomUser(r), randomName(r), randomPeriod(r), r.Int64())
	}
}

func FuzzUsersDistinct(f *testing.F) {
	for i, user := range hardUsers {
		f.Add(user, hardUsers[(i+1)%len(hardUsers)])
	}
	f.Add("%7B", "{")
	f.Add("%25", "%")
	f.Fuzz(func(t *testing.T, a, b string) {
		if a == "" || b == "" {
			return
		}
		keyA, keyB := userPart(t, Layout{}, a), userPart(t, Layout{}, b)
		if (keyA == keyB) != (a == b) {
			t.Errorf("users %q and %q have %q and %q", a, b, keyA, keyB)
		}
	})
}

func FuzzKeysOfAUserShareASlot(f *testing.F) {
	for i, user := range hardUsers {
		f.Add(user, hardNames[i%len(hardNames)], int64(hardPeriods[i%len(hardPeriods)]/time.Millisecond), int64(i-5))
	}
	f.Fuzz(func(t *testing.T, user, name string, millis, window int64) {
		period := time.Duration(millis) * time.Millisecond
		if user == "" || CheckLimitName(name) != nil || CheckPeriod(period) != nil {
			return
		}
		checkSameSlot(t, Layout{}, user, name, period, window)
	})
}
