package keys

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"
)

// encode writes a parsed key again. It is the test's own, from the forms in the
// package comment, so that Parse is held to more than its own opinion.
func encode(layout Layout, k Key) string {
	tag := "%sha256:" + k.User
	if !k.Digest {
		tag = strings.NewReplacer("%", "%25", "{", "%7B", "}", "%7D").Replace(k.User)
	}
	part := layout.Prefix() + ":{" + tag + "}:"
	if k.Algorithm == "" {
		// Any plain period does for a key that does not tell its own.
		period := k.Period
		if period == 0 {
			period = time.Second
		}
		return string(AppendWindow([]byte(part), k.Limit, period, k.Window))
	}
	if k.Limit != "" {
		part += k.Limit + ":"
	}
	return part + k.Algorithm
}

func TestParse(t *testing.T) {
	for key, want := range map[string]Key{
		"rl:{alice}:29139841":                       {User: "alice", Window: 29139841},
		"rl:{alice}:login:29139841":                 {User: "alice", Limit: "login", Window: 29139841},
		"rl:{alice}:a:b:5":                          {User: "alice", Limit: "a:b", Window: 5},
		"rl:{alice}::::5":                           {User: "alice", Limit: "::", Window: 5},
		"rl:{alice}:5:6":                            {User: "alice", Limit: "5", Window: 6},
		"rl:{alice}:-5":                             {User: "alice", Window: -5},
		"rl:{alice}:0":                              {User: "alice"},
		"rl:{alice}:9223372036854775807":            {User: "alice", Window: math.MaxInt64},
		"rl:{alice}:5@720000500":                    {User: "alice", Window: 5, Period: 720000500 * time.Millisecond},
		"rl:{alice}:day:-5@86404000":                {User: "alice", Limit: "day", Window: -5, Period: 86404 * time.Second},
		"rl:{alice}:5@9223372036854":                {User: "alice", Window: 5, Period: 9223372036854 * time.Millisecond},
		"rl:{alice}:login:gcra":                     {User: "alice", Limit: "login", Algorithm: "gcra"},
		"rl:{alice}:a:b:sliding-log_2":              {User: "alice", Limit: "a:b", Algorithm: "sliding-log_2"},
		"rl:{alice}:gcra":                           {User: "alice", Algorithm: "gcra"},
		"rl:{a:b}:5":                                {User: "a:b", Window: 5},
		"rl:{%7B%7D%25}:5":                          {User: "{}%", Window: 5},
		"rl:{%257B}:5":                              {User: "%7B", Window: 5},
		"rl:{\xff\x00}:5":                           {User: "\xff\x00", Window: 5},
		"rl:{" + strings.Repeat("%25", 128) + "}:5": {User: strings.Repeat("%", 128), Window: 5},
		"rl:{%sha256:" + digestOfLongUser + "}:5":   {User: digestOfLongUser, Digest: true, Window: 5},
		"rl:{%25sha256:" + digestOfLongUser + "}:5": {User: "%sha256:" + digestOfLongUser, Window: 5},
		"rl:{" + digestOfLongUser + "}:5":           {User: digestOfLongUser, Window: 5},
	} {
		got, err := Layout{}.Parse(key)
		if err != nil || got != want {
			t.Errorf("Parse(%q) = %+v, %v; want %+v", key, got, err, want)
		}
		if again := encode(Layout{}, got); again != key {
			t.Errorf("Parse(%q) is written %q again", key, again)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for reason, keys := range map[string][]string{
		"not of this layout":     {"", "rl", "rl:", "rl:alice:5", "rl:{alice", "rl:{alice}", "rl:{alice}5", "RL:{alice}:5", "xrl:{alice}:5", "rl2:{alice}:5", "rl::{alice}:5", "{alice}:5", " rl:{alice}:5"},
		"no such user":           {"rl:{}:5", "rl:{{}:5", "rl:{a}b}:5", "rl:{{a}}:5", "rl:{a{b}:5"},
		"no such escape":         {"rl:{%}:5", "rl:{%2}:5", "rl:{%7}:5", "rl:{a%}:5", "rl:{%%}:5", "rl:{%7b}:5", "rl:{%7d}:5", "rl:{%41}:5", "rl:{%3A}:5", "rl:{%00}:5", "rl:{%FF}:5"},
		"too long for a literal": {"rl:{" + strings.Repeat("x", 129) + "}:5", "rl:{" + strings.Repeat("%25", 129) + "}:5"},
		"no such digest": {
			"rl:{%sha256:}:5", "rl:{%sha256:abc}:5", "rl:{%sha256:" + digestOfLongUser[1:] + "}:5", "rl:{%sha256:" + digestOfLongUser + "0}:5",
			"rl:{%sha256:" + strings.ToUpper(digestOfLongUser) + "}:5", "rl:{%SHA256:" + digestOfLongUser + "}:5", "rl:{%sha256:" + digestOfLongUser[1:] + "g}:5", "rl:{%sha1:" + digestOfLongUser + "}:5",
		},
		"no such number":    {"rl:{a}:", "rl:{a}:-", "rl:{a}:-0", "rl:{a}:05", "rl:{a}:00", "rl:{a}:-05", "rl:{a}:+5", "rl:{a}:5 ", "rl:{a}: 5", "rl:{a}:5.0", "rl:{a}:0x5", "rl:{a}:1_000", "rl:{a}:1e3", "rl:{a}:9223372036854775808", "rl:{a}:-9223372036854775809", "rl:{a}:٣"},
		"no such period":    {"rl:{a}:5@", "rl:{a}:@720000500", "rl:{a}:5@0", "rl:{a}:5@-720000500", "rl:{a}:5@+720000500", "rl:{a}:5@0720000500", "rl:{a}:5@720000500@720000500", "rl:{a}:5@-9223372036854775808", "rl:{a}:5@-18446744010000", "rl:{a}:5@9223372036855", "rl:{a}:5@18446744100000", "rl:{a}:5@9223372036854775807", "rl:{a}:5@99999999999999999999"},
		"a needless period": {"rl:{a}:5@1", "rl:{a}:5@10000", "rl:{a}:5@11000", "rl:{a}:5@60000", "rl:{a}:5@600000", "rl:{a}:5@660000", "rl:{a}:5@86400000", "rl:{a}:5@172800000"},
		"no such name":      {"rl:{a}::5", "rl:{a}:b c:5", "rl:{a}:b=c:5", "rl:{a}:b/c:5", "rl:{a}:b@5:5", "rl:{a}:{b}:5", "rl:{a}:b\n:5", "rl:{a}:\x7f:5", "rl:{a}:" + strings.Repeat("n", 65) + ":5", "rl:{a}::gcra"},
		"no such algorithm": {"rl:{a}:login:GCRA", "rl:{a}:login:", "rl:{a}:login:-a", "rl:{a}:login:_a", "rl:{a}:login:é", "rl:{a}:login:gcra@5", "rl:{a}:login:g cra", "rl:{a}:login:" + strings.Repeat("g", 33)},
	} {
		for _, key := range keys {
			if k, err := (Layout{}).Parse(key); !errors.Is(err, ErrForeign) || k != (Key{}) {
				t.Errorf("%s: Parse(%q) = %+v, %v; want ErrForeign", reason, key, k, err)
			}
		}
	}
}

func TestParseQuotesOnlyTheStartOfALongKey(t *testing.T) {
	_, err := Layout{}.Parse(strings.Repeat("\xff", 1<<20))
	if err == nil || len(err.Error()) > 1000 {
		t.Errorf("the error for a key of 1 MiB: %d bytes", len(err.Error()))
	}
}

// checkRoundTrip fails unless the key of a window reads back as what it was made of.
func checkRoundTrip(t *testing.T, layout Layout, user, name string, period time.Duration, window int64) {
	t.Helper()
	key, err := layout.Window(user, name, period, window)
	if err != nil {
		t.Fatalf("Window(%s, %q, %v, %d): %v", quote(user), name, period, window, err)
	}
	want := Key{User: user, Limit: name, Window: window}
	if len(user) > MaxUserBytes {
		_, digest, _ := strings.Cut(Tag(key), "%sha256:")
		want.User, want.Digest = digest, true
	}
	if strings.Contains(key[strings.LastIndexByte(key, ':'):], "@") {
		want.Period = period
	}
	got, err := layout.Parse(key)
	if err != nil || got != want {
		t.Errorf("Parse(%s) = %+v, %v; want %+v", quote(key), got, err, want)
	}
}

func TestRoundTrip(t *testing.T) {
	r := newRand()
	layouts := []Layout{{}, mustNew(t, "a:b"), mustNew(t, "%7B")}
	for i, user := range hardUsers {
		for j, name := range hardNames {
			checkRoundTrip(t, layouts[(i+j)%len(layouts)], user, name, hardPeriods[(i+j)%len(hardPeriods)], r.Int64())
		}
	}
	for range 20_000 {
		checkRoundTrip(t, layouts[r.IntN(len(layouts))], randomUser(r), randomName(r), randomPeriod(r), int64(r.Uint64()))
	}
}

func FuzzRoundTrip(f *testing.F) {
	for i, user := range hardUsers {
		f.Add(user, hardNames[i%len(hardNames)], int64(hardPeriods[i%len(hardPeriods)]/time.Millisecond), int64(i-5))
	}
	f.Fuzz(func(t *testing.T, user, name string, millis, window int64) {
		if user == "" || CheckLimitName(name) != nil || millis < 1 || millis > 9223372036854 {
			return
		}
		checkRoundTrip(t, Layout{}, user, name, time.Duration(millis)*time.Millisecond, window)
	})
}

func FuzzParse(f *testing.F) {
	for i, user := range hardUsers {
		part := userPart(f, Layout{}, user)
		f.Add("", string(AppendWindow([]byte(part), hardNames[i%len(hardNames)], hardPeriods[i%len(hardPeriods)], int64(i))))
	}
	for _, key := range []string{"", "rl:{a}:-0", "rl:{%7b}:5", "rl:{a}:5@60000", "rl:{a}:login:gcra", "rl:{a}:gcra", "rl:{a}::5"} {
		f.Add("", key)
	}
	f.Add("a:b", "a:b:{c}:5")
	f.Fuzz(func(t *testing.T, prefix, key string) {
		layout, err := New(prefix)
		if err != nil {
			return
		}
		k, err := layout.Parse(key)
		if err != nil {
			if !errors.Is(err, ErrForeign) || k != (Key{}) {
				t.Errorf("Parse(%q) = %+v, %v; want ErrForeign and no key", key, k, err)
			}
			return
		}
		if again := encode(layout, k); again != key {
			t.Errorf("Parse(%q) = %+v, which is written %q", key, k, again)
		}
	})
}
