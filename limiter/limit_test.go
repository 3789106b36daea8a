package limiter_test

import (
	"encoding/json"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/slotlimit/slotlimit/keys"
	"github.com/slotlimit/slotlimit/limiter"
)

const day = 24 * time.Hour

func TestParseLimit(t *testing.T) {
	for _, c := range []struct {
		text string
		want limiter.Limit
		back string // as String writes it
	}{
		{"100/1m", limiter.PerMinute(100), "100/1m"},
		{"100/m", limiter.PerMinute(100), "100/1m"},
		{"100/60s", limiter.PerMinute(100), "100/1m"},
		{"5/s", limiter.PerSecond(5), "5/1s"},
		{"5/h", limiter.PerHour(5), "5/1h"},
		{"5/d", limiter.PerDay(5), "5/1d"},
		{"5/24h", limiter.PerDay(5), "5/1d"},
		{"1000/7d", limiter.Per(1000, 7*day), "1000/7d"},
		{"10/250ms", limiter.Per(10, 250*time.Millisecond), "10/250ms"},
		{"10/1h30m", limiter.Per(10, 90*time.Minute), "10/1h30m"},
		{"10/1h0m30s", limiter.Per(10, time.Hour+30*time.Second), "10/1h0m30s"},
		{"10/1.5s", limiter.Per(10, 1500*time.Millisecond), "10/1.5s"},
		{"10/.5h", limiter.Per(10, 30*time.Minute), "10/30m"},
		{"10/10h", limiter.Per(10, 10*time.Hour), "10/10h"},
		{"0/1m", limiter.PerMinute(0), "0/1m"},
		{"9007199254740991/366d", limiter.Per(limiter.MaxRate, limiter.MaxPeriod), "9007199254740991/366d"},
		{"login=5/1h", limiter.Limit{Name: "login", Rate: 5, Period: time.Hour}, "login=5/1h"},
		{"api:v2=5/1h", limiter.Limit{Name: "api:v2", Rate: 5, Period: time.Hour}, "api:v2=5/1h"},
	} {
		got, err := limiter.ParseLimit(c.text)
		if err != nil || got != c.want {
			t.Errorf("ParseLimit(%q) = %+v, %v, want %+v", c.text, got, err, c.want)
		}
		if got.String() != c.back {
			t.Errorf("ParseLimit(%q).String() = %q, want %q", c.text, got, c.back)
		}
	}
}

func TestParseLimitRefuses(t *testing.T) {
	for text, want := range map[string]error{
		"":                        limiter.ErrLimitText,
		"100":                     limiter.ErrLimitText,
		"/":                       limiter.ErrLimitText,
		"100/":                    limiter.ErrLimitText,
		"/1m":                     limiter.ErrLimitText,
		"+5/1m":                   limiter.ErrLimitText,
		"5 /1m":                   limiter.ErrLimitText,
		"1e3/1m":                  limiter.ErrLimitText,
		"0x10/1m":                 limiter.ErrLimitText,
		"5/1":                     limiter.ErrLimitText,
		"5/h30m":                  limiter.ErrLimitText,
		"5/minute":                limiter.ErrLimitText,
		"5/1.5d":                  limiter.ErrLimitText,
		"5/-1m":                   limiter.ErrPeriod,
		"5/70000d":                limiter.ErrPeriod,
		"5/99999999999999999999d": limiter.ErrPeriod,
		"5/-1d":                   limiter.ErrLimitText,
		"5/1m/1m":                 limiter.ErrLimitText,
		"=5/1m":                   limiter.ErrLimitText,
		"-1/1m":                   limiter.ErrRate,
		"9007199254740992/1m":     limiter.ErrRate,
		"99999999999999999999/m":  limiter.ErrRate,
		"5/0s":                    limiter.ErrPeriod,
		"5/1us":                   limiter.ErrPeriod,
		"5/1500us":                limiter.ErrPeriod,
		"5/367d":                  limiter.ErrPeriod,
		"a b=5/1m":                limiter.ErrLimitName,
		"{a}=5/1m":                limiter.ErrLimitName,
		"a=b=5/1m":                limiter.ErrLimitText,
	} {
		if got, err := limiter.ParseLimit(text); !errors.Is(err, want) || got != (limiter.Limit{}) {
			t.Errorf("ParseLimit(%q) = %+v, %v, want %v", text, got, err, want)
		}
	}
}

func TestLimitValidate(t *testing.T) {
	good := limiter.PerMinute(1)
	for _, c := range []struct {
		limit limiter.Limit
		want  error
	}{
		{good, nil},
		{limiter.Limit{}, limiter.ErrPeriod},
		{limiter.PerMinute(-1), limiter.ErrRate},
		{limiter.PerMinute(limiter.MaxRate), nil},
		{limiter.PerMinute(limiter.MaxRate + 1), limiter.ErrRate},
		{limiter.PerMinute(math.MinInt64), limiter.ErrRate},
		{limiter.Per(1, time.Millisecond), nil},
		{limiter.Per(1, time.Millisecond-1), limiter.ErrPeriod},
		{limiter.Per(1, 366*day), nil},
		{limiter.Per(1, 366*day+time.Millisecond), limiter.ErrPeriod},
		{limiter.Per(1, -time.Minute), limiter.ErrPeriod},
		{limiter.Limit{Name: "a}", Rate: 1, Period: time.Minute}, limiter.ErrLimitName},
	} {
		if err := c.limit.Validate(); !errors.Is(err, c.want) {
			t.Errorf("%+v: %v, want %v", c.limit, err, c.want)
		}
		if _, err := limiter.New(new(stub), c.limit); !errors.Is(err, c.want) {
			t.Errorf("New with %+v: %v, want %v", c.limit, err, c.want)
		}
		if _, err := c.limit.MarshalText(); !errors.Is(err, c.want) {
			t.Errorf("MarshalText of %+v: %v, want %v", c.limit, err, c.want)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		client limiter.Runner
		opt    limiter.Option
		want   error
	}{
		"nil client":         {nil, nil, limiter.ErrOption},
		"nil pointer":        {(*stub)(nil), nil, limiter.ErrOption},
		"prefix with a tag":  {new(stub), limiter.WithPrefix("{a}"), keys.ErrPrefix},
		"no grace":           {new(stub), limiter.WithGrace(0), limiter.ErrOption},
		"too long a grace":   {new(stub), limiter.WithGrace(keys.MaxGrace + 1), limiter.ErrOption},
		"a broken grace":     {new(stub), limiter.WithGrace(time.Second + 1), limiter.ErrOption},
		"a clock that is no": {new(stub), limiter.WithClock(nil), limiter.ErrOption},
	} {
		var opts []limiter.Option
		if c.opt != nil {
			opts = append(opts, c.opt)
		}
		if lim, err := limiter.New(c.client, limiter.PerMinute(1), opts...); !errors.Is(err, c.want) || lim != nil {
			t.Errorf("%s: %v, %v, want %v", name, lim, err, c.want)
		}
	}
}

func TestNewRefusesNilOption(t *testing.T) {
	if lim, err := limiter.New(new(stub), limiter.PerMinute(1), nil); !errors.Is(err, limiter.ErrOption) || lim != nil {
		t.Errorf("%v, %v, want ErrOption", lim, err)
	}
}

func TestLimitInJSON(t *testing.T) {
	type config struct{ Limits map[string]limiter.Limit }
	in := config{map[string]limiter.Limit{"free": limiter.PerMinute(10), "paid": {Name: "p", Rate: 1e6, Period: day}}}
	text, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"Limits":{"free":"10/1m","paid":"p=1000000/1d"}}`; string(text) != want {
		t.Errorf("%s, want %s", text, want)
	}
	var out config
	if err := json.Unmarshal(text, &out); err != nil || out.Limits["paid"] != in.Limits["paid"] {
		t.Errorf("%+v, %v", out, err)
	}
	kept := limiter.PerMinute(3)
	if err := kept.UnmarshalText([]byte("nonsense")); err == nil || kept != limiter.PerMinute(3) {
		t.Errorf("after an error: %v, %v", kept, err)
	}
}

// Whatever is read is valid, and is read again from what it is written as.
func FuzzParseLimit(f *testing.F) {
	for _, seed := range []string{"100/1m", "login=5/1h30m", "0/d", "10/250ms", "-1/1m", "a=/", "9007199254740991/366d"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		limit, err := limiter.ParseLimit(text)
		if err != nil {
			return
		}
		if err := limit.Validate(); err != nil {
			t.Fatalf("%q gave an invalid limit: %v", text, err)
		}
		if again, err := limiter.ParseLimit(limit.String()); err != nil || again != limit {
			t.Fatalf("%q gave %+v, written %q, read %+v, %v", text, limit, limit, again, err)
		}
	})
}
