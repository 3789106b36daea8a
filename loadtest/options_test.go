package main

import (
	"flag"
	"regexp"
	"strings"
	"testing"

	"github.com/slotlimit/slotlimit/loadtest/faults"
)

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
		var o options
		o.flags(command).VisitAll(func(f *flag.Flag) {
			text, ok := named[f.Name]
			delete(named, f.Name)
			want := "(" + strings.Replace(f.DefValue, "m0s", "m", 1)
			if f.DefValue == "" || f.DefValue == "false" || f.DefValue == "0s" {
				want = ""
			}
			if !ok || !strings.Contains(text, want) {
				t.Errorf("%s: the usage of -%s is %q, should name the default %s", command, f.Name, text, f.DefValue)
			}
		})
		for name := range named {
			t.Errorf("%s: the usage names -%s, which is no flag", command, name)
		}
	}
}

func TestUsageNamesTheFaults(t *testing.T) {
	for _, name := range faults.Names() {
		if !regexp.MustCompile(`(?m)^ {22}` + name + `(:\S+)? `).MatchString(usages["loadtest"]) {
			t.Errorf("the usage does not name the fault %s", name)
		}
	}
}

func TestHelp(t *testing.T) {
	for command, usage := range usages {
		args := append(strings.Fields(command)[1:], "-h")
		if status, stdout, stderr := loadtest(t, args...); status != exitOK || stdout != usage || stderr != "" {
			t.Errorf("%s -h: exit status %d, stderr %q, stdout %q", command, status, stderr, stdout)
		}
	}
}

func TestPrefixesDiffer(t *testing.T) {
	if a, b := randomPrefix(), randomPrefix(); a == b || !strings.HasPrefix(a, "lt-") {
		t.Errorf("two runs have the prefixes %q and %q", a, b)
	}
}
