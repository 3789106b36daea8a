package keys

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestNew(t *testing.T) {
	for _, good := range []string{"", "rl", "a", "a:b", ":", "a b", "é", "\xff", "*", strings.Repeat("p", MaxPrefixBytes)} {
		layout, err := New(good)
		if err != nil {
			t.Errorf("New(%q): %v", good, err)
			continue
		}
		want := good
		if want == "" {
			want = "rl"
		}
		if layout.Prefix() != want {
			t.Errorf("New(%q).Prefix() = %q", good, layout.Prefix())
		}
		if part := userPart(t, layout, "alice"); part != want+":{alice}:" {
			t.Errorf("New(%q).User(alice) = %q", good, part)
		}
	}
	for _, bad := range []string{"{", "}", "a{b}", "a}", "\x00", "a\n", "\x1f", "\x7f", strings.Repeat("p", MaxPrefixBytes+1)} {
		if layout, err := New(bad); !errors.Is(err, ErrPrefix) || layout != (Layout{}) {
			t.Errorf("New(%q) = %v, %v; want ErrPrefix", bad, layout, err)
		}
	}
}

func TestZeroLayoutIsTheDefault(t *testing.T) {
	var zero Layout
	if zero.Prefix() != DefaultPrefix || zero != mustNew(t, "") || zero != mustNew(t, "rl") {
		t.Error("Layout{}, New(\"\") and New(\"rl\") are not equal with the prefix rl")
	}
	if zero == mustNew(t, "rl2") {
		t.Error("layouts of different prefixes are equal")
	}
}

func TestWindowKey(t *testing.T) {
	var layout Layout
	for _, c := range []struct {
		user, limit string
		period      time.Duration
		window      int64
		want        string
	}{
		{"alice", "", time.Minute, 29139841, "rl:{alice}:29139841"},
		{"alice", "login", time.Minute, 29139841, "rl:{alice}:login:29139841"},
		{"alice", "a:b", time.Minute, 5, "rl:{alice}:a:b:5"},
		{"a:b", "", time.Minute, 5, "rl:{a:b}:5"},
		{"alice", "", time.Minute, 0, "rl:{alice}:0"},
		{"alice", "", time.Minute, -5, "rl:{alice}:-5"},
		{"alice", "", time.Minute, -1 << 63, "rl:{alice}:-9223372036854775808"},
		{"alice", "", 250 * time.Millisecond, 5, "rl:{alice}:5"},
		{"alice", "", 10 * time.Second, 5, "rl:{alice}:5"},
		{"alice", "", 12500 * time.Millisecond, 5, "rl:{alice}:5@12500"},
		{"alice", "", 10 * time.Minute, 5, "rl:{alice}:5"},
		{"alice", "", 10*time.Minute + time.Millisecond, 5, "rl:{alice}:5@600001"},
		{"alice", "", 48 * time.Hour, 5, "rl:{alice}:5"},
		{"alice", "", 48*time.Hour + time.Minute, 5, "rl:{alice}:5@172860000"},
		{"alice", "day", 24*time.Hour + 4*time.Second, 5, "rl:{alice}:day:5@86404000"},
		{"alice", "", 9223372036854 * time.Millisecond, -5, "rl:{alice}:-5@9223372036854"},
	} {
		got, err := layout.Window(c.user, c.limit, c.period, c.window)
		if err != nil || got != c.want {
			t.Errorf("Window(%q, %q, %v, %d) = %q, %v; want %q", c.user, c.limit, c.period, c.window, got, err, c.want)
		}
		appended := AppendWindow([]byte("before "+userPart(t, layout, c.user)), c.limit, c.period, c.window)
		if string(appended) != "before "+c.want {
			t.Errorf("AppendWindow(%q, %q, %v, %d) = %q; want %q after \"before \"", c.user, c.limit, c.period, c.window, appended, c.want)
		}
	}
}

func TestWindowRefuses(t *testing.T) {
	var layout Layout
	for _, c := range []struct {
		user, limit string
		period      time.Duration
		want        error
	}{
		{"", "", time.Minute, ErrEmptyUser},
		{"", "login", time.Minute, ErrEmptyUser},
		{"alice", "a/b", time.Minute, ErrLimitName},
		{"alice", "", 0, ErrPeriod},
		{"alice", "", -time.Minute, ErrPeriod},
		{"alice", "", time.Millisecond - 1, ErrPeriod},
		{"alice", "", time.Millisecond + 1, ErrPeriod},
		{"alice", "", 1<<63 - 1, ErrPeriod},
	} {
		if key, err := layout.Window(c.user, c.limit, c.period, 5); !errors.Is(err, c.want) || key != "" {
			t.Errorf("Window(%q, %q, %v) = %q, %v; want %v", c.user, c.limit, c.period, key, err, c.want)
		}
	}
	if part, err := layout.User(""); !errors.Is(err, ErrEmptyUser) || part != "" {
		t.Errorf("User(\"\") = %q, %v; want ErrEmptyUser", part, err)
	}
}

func TestCheckLimitName(t *testing.T) {
	for _, good := range hardNames {
		if err := CheckLimitName(good); err != nil {
			t.Errorf("CheckLimitName(%q): %v", good, err)
		}
	}
	bad := []string{strings.Repeat("n", MaxLimitNameBytes+1), strings.Repeat("n", 64<<10)}
	for c := range byte(0x20) {
		bad = append(bad, "a"+string(rune(c)))
	}
	for _, c := range "{}=/@ \x7f" {
		bad = append(bad, string(c), "a"+string(c)+"b")
	}
	for _, name := range bad {
		err := CheckLimitName(name)
		if !errors.Is(err, ErrLimitName) {
			t.Errorf("CheckLimitName(%s) = %v, want ErrLimitName", quote(name), err)
			continue
		}
		if length := len(err.Error()); length > 700 {
			t.Errorf("the error for a name of %d bytes has %d bytes", len(name), length)
		}
	}
}

func TestLongestKey(t *testing.T) {
	layout := mustNew(t, strings.Repeat("p", MaxPrefixBytes))
	key, err := layout.Window(strings.Repeat("{", MaxUserBytes), strings.Repeat("n", MaxLimitNameBytes), 9223372036854*time.Millisecond, -1<<63)
	if err != nil || len(key) != maxKeyBytes {
		t.Errorf("the longest key has %d bytes, %v; maxKeyBytes is %d", len(key), err, maxKeyBytes)
	}
}

// TestWindowAllocatesTheKeyOnly covers the longest key and the digest too.
func TestWindowAllocatesTheKeyOnly(t *testing.T) {
	layout := mustNew(t, strings.Repeat("p", MaxPrefixBytes))
	name := strings.Repeat("n", MaxLimitNameBytes)
	period := 9223372036854 * time.Millisecond
	buf := make([]byte, 0, maxKeyBytes)
	for _, user := range []string{"alice", strings.Repeat("{", MaxUserBytes), strings.Repeat("x", 64<<10)} {
		allocs := testing.AllocsPerRun(100, func() {
			if _, err := layout.Window(user, name, period, -1<<63); err != nil {
				t.Fatal(err)
			}
		})
		if allocs > 1 {
			t.Errorf("Window for user %s: %v allocations, want the key alone", quote(user), allocs)
		}
		part := userPart(t, layout, user)
		allocs = testing.AllocsPerRun(100, func() { buf = AppendWindow(append(buf[:0], part...), name, period, -1<<63) })
		if allocs != 0 {
			t.Errorf("AppendWindow for user %s: %v allocations into a buffer that is large enough", quote(user), allocs)
		}
	}
}

// TestPrefixesPartLayouts: no key of one prefix is read by another, though one prefix
// starts with the other or holds colons.
func TestPrefixesPartLayouts(t *testing.T) {
	prefixes := []string{"rl", "r", "rl2", "rl:", "rl:a", "a:rl", ":", "::", "%7B"}
	for _, p := range prefixes {
		key, err := mustNew(t, p).Window("alice", "", time.Minute, 5)
		if err != nil {
			t.Fatal(err)
		}
		for _, q := range prefixes {
			_, err := mustNew(t, q).Parse(key)
			if (err == nil) != (p == q) {
				t.Errorf("prefix %q reads %q of prefix %q: %v", q, key, p, err)
			}
		}
	}
}

func BenchmarkWindow(b *testing.B) {
	var layout Layout
	b.ReportAllocs()
	var key string
	for b.Loop() {
		key, _ = layout.Window("user-12345", "login", time.Minute, 29139841)
	}
	if want := "rl:{user-12345}:login:29139841"; key != want {
		b.Fatalf("made %q, want %q", key, want)
	}
}

func BenchmarkAppendWindow(b *testing.B) {
	part := userPart(b, Layout{}, "user-12345")
	for _, c := range []struct {
		period time.Duration
		want   string
	}{
		{time.Minute, "rl:{user-12345}:login:29139841"},
		{90061 * time.Second, "rl:{user-12345}:login:29139841@90061000"},
	} {
		b.Run(fmt.Sprint("period=", c.period), func(b *testing.B) {
			b.ReportAllocs()
			buf := make([]byte, 0, 64)
			for b.Loop() {
				buf = AppendWindow(append(buf[:0], part...), "login", c.period, 29139841)
			}
			if string(buf) != c.want {
				b.Fatalf("made %q, want %q", buf, c.want)
			}
		})
	}
}

func BenchmarkSlot(b *testing.B) {
	for _, c := range []struct {
		name, key string
		want      int
	}{
		{"tag=5", "rl:{alice}:29139841", 749},
		{"tag=1KiB", "rl:{" + strings.Repeat("x", 1024) + "}:5", bitwiseSlot(strings.Repeat("x", 1024))},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			slot := 0
			for b.Loop() {
				slot = Slot(c.key)
			}
			if slot != c.want {
				b.Fatalf("slot %d, want %d", slot, c.want)
			}
		})
	}
}
