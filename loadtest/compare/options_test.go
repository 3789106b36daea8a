package main

import (
	"flag"
	"net"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

func addr(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// The usage texts name every flag with its default, and no other flag.
func TestUsageNamesTheFlags(t *testing.T) {
	for command, usage := range usages {
		named := map[string]string{} // the flag's paragraph
		last := ""
		for line := range strings.Lines(usage) {
			if m := regexp.MustCompile(`^  -([a-z]+) `).FindStringSubmatch(line); m != nil {
				last = m[1]
			} else if !strings.HasPrefix(line, "       ") {
				last = ""
			}
			if last != "" {
				named[last] += " " + strings.TrimSpace(line)
			}
		}
		o := options{limiters: names(contenders)}
		o.flags(command).VisitAll(func(f *flag.Flag) {
			text, ok := named[f.Name]
			delete(named, f.Name)
			value := f.Value.String()
			want := "(" + value
			if value == "" || value == "false" {
				want = ""
			}
			if !ok || !strings.Contains(text, want) {
				t.Errorf("%s: the usage of -%s is %q, should name the default %q", command, f.Name, text, value)
			}
		})
		for name := range named {
			t.Errorf("%s: the usage names -%s, which is no flag", command, name)
		}
	}
}

func TestHelp(t *testing.T) {
	for command, usage := range usages {
		args := append(strings.Fields(command)[1:], "-h")
		if status, stdout, stderr := runWith(t, contenders, args...); status != exitOK || stdout != usage || stderr != "" {
			t.Errorf("%s -h: exit status %d, stderr %q, stdout %q", command, status, stderr, stdout)
		}
	}
}

func TestParse(t *testing.T) {
	for _, test := range []struct {
		args string
		want func(options) bool
	}{
		{"", func(o options) bool {
			return len(o.limiters) == len(contenders) && len(o.loads()) == 3 && o.rounds == 3 && o.duration == time.Second
		}},
		{"-limiters slotlimit,ulule", func(o options) bool { return reflect.DeepEqual(o.limiters, wordList{"slotlimit", "ulule"}) }},
		{"-workload zipf,hot", func(o options) bool {
			return reflect.DeepEqual(o.loads(), []workload{{"hot", 1}, {"zipf", 10000}})
		}},
		{"-workload uniform -users 1000,1000000", func(o options) bool {
			return reflect.DeepEqual(o.loads(), []workload{{"uniform", 1000}, {"uniform", 1000000}})
		}},
		{"-goroutines 3,7", func(o options) bool { return reflect.DeepEqual(o.goroutines, numberList{3, 7}) }},
		{"-quick", func(o options) bool { return o.rounds == 1 && o.duration == 400*time.Millisecond }},
		{"-quick -rounds 2 -duration 1s", func(o options) bool { return o.rounds == 2 && o.duration == time.Second }},
	} {
		o, err := parse("compare", strings.Fields(test.args), contenders)
		if err != nil || !test.want(o) {
			t.Errorf("%q: %+v, %v", test.args, o, err)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for _, test := range []struct{ command, args, want string }{
		{"compare", "-limiters nobody", `-limiters: "nobody": want some of slotlimit, redis_rate, ulule, throttled, evalsha, pipeline`},
		{"compare", "-limiters ulule,ulule", `-limiters: "ulule" stands there twice`},
		{"compare", "-workload cold", `-workload: "cold": want some of hot, uniform, zipf`},
		{"compare", "-goroutines 0", "-goroutines: 0: want 1 to 10000"},
		{"compare", "-goroutines 4,4", "-goroutines: 4 stands there twice"},
		{"compare", "-goroutines many", `"many" is no whole number`},
		{"compare", "-users 10000001", "-users: 10000001: want 1 to 10000000"},
		{"compare", "-rounds 0", "-rounds: 0: want 1 to 1000"},
		{"compare", "-duration 1us", "-duration: 1µs: want 1ms to 1h0m0s"},
		{"compare", "-pool -1", "-pool: -1: want 0 to 10000"},
		{"compare", "stray", `unknown argument "stray"; -h shows the usage`},
		{"compare pause", "-users 5,6", "-users 5,6, -goroutines 64: want one number each"},
		{"compare pause", "-plot x", "flag provided but not defined: -plot"},
	} {
		if _, err := parse(test.command, strings.Fields(test.args), contenders); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s %s: %v, want %s", test.command, test.args, err, test.want)
		}
	}
}
