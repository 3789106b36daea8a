package keys_test

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/slotlimit/slotlimit/keys"
)

// A person who knows the user and the time knows the key, and its slot.
func Example() {
	var layout keys.Layout // the prefix "rl"
	now := time.Unix(1748390460, 0)

	window := keys.WindowNumber(now.UnixMilli(), time.Minute)
	key, err := layout.Window("alice", "", time.Minute, window)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(key)
	fmt.Println("tag", keys.Tag(key), "slot", keys.Slot(key))
	// Output:
	// rl:{alice}:29139841
	// tag alice slot 749
}

func ExampleSlot() {
	fmt.Println(keys.Slot("123456789"))
	fmt.Println(keys.Slot("rl:{alice}:29139840"), keys.Slot("rl:{alice}:login:29139841"), keys.Slot("alice"))
	// Output:
	// 12739
	// 749 749 749
}

func ExampleTag() {
	for _, key := range []string{"rl:{alice}:5", "plain", "{}{second}", "{{a}}", "{open"} {
		fmt.Println(key, "->", keys.Tag(key))
	}
	// Output:
	// rl:{alice}:5 -> alice
	// plain -> plain
	// {}{second} -> {}{second}
	// {{a}} -> {a
	// {open -> {open
}

func ExampleNew() {
	layout, err := keys.New("shop")
	fmt.Println(layout.Prefix(), err)

	_, err = keys.New("{shop}")
	fmt.Println(errors.Is(err, keys.ErrPrefix))
	fmt.Println(err)
	// Output:
	// shop <nil>
	// true
	// keys: bad prefix: "{shop}" holds '{'; braces and control bytes are not allowed
}

func ExampleLayout_User() {
	var layout keys.Layout
	for _, user := range []string{"alice", "a:b", "}", "%7B", strings.Repeat("x", 64<<10), ""} {
		start, err := layout.User(user)
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println(start)
	}
	// Output:
	// rl:{alice}:
	// rl:{a:b}:
	// rl:{%7D}:
	// rl:{%257B}:
	// rl:{%sha256:1f8745f0d2d1387ec1af2211a3cf417b2e9e885e853472649c1d979d0e9370e3}:
	// keys: empty user
}

func ExampleLayout_Window() {
	var layout keys.Layout
	for _, limit := range []struct {
		name   string
		period time.Duration
	}{
		{"", time.Minute},
		{"login", time.Minute},
		{"export", 720000500 * time.Millisecond}, // not plain, so the key tells it
	} {
		key, err := layout.Window("alice", limit.name, limit.period, keys.WindowNumber(1748390460000, limit.period))
		fmt.Println(key, err)
	}
	// Output:
	// rl:{alice}:29139841 <nil>
	// rl:{alice}:login:29139841 <nil>
	// rl:{alice}:export:2428@720000500 <nil>
}

// The user's part is made once, and each window's key from it in a reused buffer.
func ExampleAppendWindow() {
	var layout keys.Layout
	userPart, err := layout.User("alice")
	if err != nil {
		fmt.Println(err)
		return
	}
	var buf []byte
	for window := int64(29139840); window < 29139842; window++ {
		buf = keys.AppendWindow(append(buf[:0], userPart...), "login", time.Minute, window)
		fmt.Println(string(buf))
	}
	// Output:
	// rl:{alice}:login:29139840
	// rl:{alice}:login:29139841
}

func ExampleLayout_Parse() {
	var layout keys.Layout
	for _, key := range []string{
		"rl:{alice}:login:29139841",
		"rl:{%7B}:2428@720000500",
		"rl:{alice}:login:gcra",
		"session:{alice}:1",
	} {
		k, err := layout.Parse(key)
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Printf("user %q limit %q window %d period %v algorithm %q\n",
			k.User, k.Limit, k.Window, k.Period, k.Algorithm)
	}
	// Output:
	// user "alice" limit "login" window 29139841 period 0s algorithm ""
	// user "{" limit "" window 2428 period 200h0m0.5s algorithm ""
	// user "alice" limit "login" window 0 period 0s algorithm "gcra"
	// keys: foreign key: "session:{alice}:1": it does not start with "rl:{user}:"
}

func ExampleWindowNumber() {
	fmt.Println(keys.WindowNumber(1748390459_000, time.Minute))
	fmt.Println(keys.WindowNumber(1748390460_000, time.Minute))
	fmt.Println(keys.WindowNumber(-1, time.Minute))
	// Output:
	// 29139840
	// 29139841
	// -1
}

func ExampleCheckLimitName() {
	fmt.Println(keys.CheckLimitName("api:login"))
	fmt.Println(keys.CheckLimitName("a/b"))
	// Output:
	// <nil>
	// keys: bad limit name: "a/b" holds '/'; braces, =, /, @, spaces and control bytes are not allowed
}

func ExampleCheckPeriod() {
	fmt.Println(keys.CheckPeriod(250 * time.Millisecond))
	fmt.Println(keys.CheckPeriod(1500 * time.Microsecond))
	// Output:
	// <nil>
	// keys: bad period: 1.5ms is no whole number of milliseconds
}
