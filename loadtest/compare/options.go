package main

import (
	"flag"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
)

// options are the flags' values.
type options struct {
	addrs      string
	limiters   wordList
	workloads  wordList
	goroutines numberList
	users      numberList
	rounds     int
	duration   time.Duration
	quick      bool
	pool       int
	seed       uint64
	json       string
	plot       string
}

// Bounds of the flags' numbers: more would be a mistake.
const (
	maxGoroutines = 10_000
	maxUsers      = 10_000_000
	maxPool       = 10_000
	maxRounds     = 1000
	maxDuration   = time.Hour
)

// A wordList is a flag of names, comma separated.
type wordList []string

func (l *wordList) String() string { return strings.Join(*l, ",") }

func (l *wordList) Set(text string) error {
	*l = nil
	for word := range strings.SplitSeq(text, ",") {
		*l = append(*l, strings.TrimSpace(word))
	}
	return nil
}

// A numberList is a flag of whole numbers, comma separated.
type numberList []int

func (l *numberList) String() string {
	words := make([]string, len(*l))
	for i, n := range *l {
		words[i] = strconv.Itoa(n)
	}
	return strings.Join(words, ",")
}

func (l *numberList) Set(text string) error {
	*l = nil
	for word := range strings.SplitSeq(text, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(word))
		if err != nil {
			return fmt.Errorf("%q is no whole number", word)
		}
		*l = append(*l, n)
	}
	return nil
}

// errHelp says that -h was given.
var errHelp = flag.ErrHelp

// usages are the help texts, by command. A test holds them to the flags.
var usages = map[string]string{
	"compare": `usage: go run . [flags]
       go run . pause [flags]      (see: go run . pause -h)

Measures rate limiters on one Redis Cluster, for the same users, under the same
limit, in turn, and shows decisions a second with ratios, response times, CPU and
allocations a decision, and whether each counted right.

Where
  -addrs LIST       nodes of the cluster, host:port, comma separated; one is enough.
                    Or a URL with user, password and TLS:
                    rediss://USER:PASSWORD@HOST:PORT?addr=HOST2:PORT2
                    Without it: six servers of its own, by scripts/cluster.sh, at
                    PORT (7401) and the five ports above it

What
  -limiters LIST    some of slotlimit, redis_rate, ulule, throttled, evalsha,
                    pipeline (slotlimit,redis_rate,ulule,throttled,evalsha,pipeline)
  -workload LIST    some of hot (one user), uniform (each of the users as likely
                    as any other), zipf (with exponent 1.1) (hot,uniform,zipf)
  -users LIST       how many users uniform and zipf have; several numbers are
                    compared with one another (10000)
  -goroutines LIST  how many goroutines decide, one decision after the other
                    (1,64,256,1024)
  -seed N           the same seed draws the same users in the same order (1)
  -pool N           connections to each node, for all limiters alike (0: each
                    client's default, 10 for each processor)

How long
  -rounds N         how often everything is measured, in turn (3)
  -duration D       how long one limiter is measured at a time, after a lead-in of a
                    tenth of that (1s)
  -quick            one round of 400ms each, unless told otherwise

Results
  -json FILE        write all measurements to a file, too
  -plot FILE        draw decisions a second by goroutines, an SVG file

Exit status
  0   slotlimit counted right
  1   it did not
  2   nothing to judge: wrong usage, or the cluster cannot be reached

An interrupt (Ctrl-C) ends the measuring; what was measured is shown. A second one
kills.
`,
	"compare pause": `usage: go run . pause [flags]

Stops one of the primaries by a signal while all are under load, and shows what is
left of the other primaries' own rates. Goroutines are dedicated to a primary, so
that those which wait for the stopped one do not take the others' load away.

  -addrs LIST       nodes of the cluster, or a URL, as for the comparison. They must
                    run on this machine. Without it: six servers of its own
  -limiters LIST    as for the comparison (slotlimit)
  -users LIST       how many users each workload has, one number (10000)
  -goroutines LIST  how many goroutines decide for each primary (64)
  -seed N           the same seed draws the same users in the same order (1)
  -pool N           connections to each node (0: each client's default)
  -rounds N         how often, each time another primary (3)
  -duration D       how long to measure, before and during the pause. Beyond the
                    cluster's node time-out, a replica takes over (1.5s)
  -json FILE        write all measurements to a file, too

Exit status
  0   slotlimit counted right
  1   it did not
  2   nothing to judge: wrong usage, or a primary cannot be stopped
`,
}

// parse reads the arguments of a command. Every error is one line.
func parse(command string, args []string, known []contender) (options, error) {
	o := options{limiters: names(known)}
	flags := o.flags(command)
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("unknown argument %q; -h shows the usage", flags.Arg(0))
	}
	given := map[string]bool{}
	flags.Visit(func(f *flag.Flag) { given[f.Name] = true })
	if o.quick && !given["rounds"] {
		o.rounds = 1
	}
	if o.quick && !given["duration"] {
		o.duration = 400 * time.Millisecond
	}
	return o, o.validate(command, known)
}

// flags returns the flags of a command, which write into the options.
func (o *options) flags(command string) *flag.FlagSet {
	f := flag.NewFlagSet(command, flag.ContinueOnError)
	f.SetOutput(io.Discard) // errors are printed by the caller, once
	o.users = numberList{10000}
	f.StringVar(&o.addrs, "addrs", "", "")
	f.Var(&o.limiters, "limiters", "")
	f.Var(&o.users, "users", "")
	f.Uint64Var(&o.seed, "seed", 1, "")
	f.IntVar(&o.pool, "pool", 0, "")
	f.IntVar(&o.rounds, "rounds", 3, "")
	f.StringVar(&o.json, "json", "", "")
	if command != "compare" {
		o.limiters, o.workloads, o.goroutines = wordList{ours}, wordList{"uniform"}, numberList{64}
		f.Var(&o.goroutines, "goroutines", "")
		f.DurationVar(&o.duration, "duration", 1500*time.Millisecond, "")
		return f
	}
	o.workloads, o.goroutines = slices.Clone(kinds), numberList{1, 64, 256, 1024}
	f.Var(&o.workloads, "workload", "")
	f.Var(&o.goroutines, "goroutines", "")
	f.DurationVar(&o.duration, "duration", time.Second, "")
	f.BoolVar(&o.quick, "quick", false, "")
	f.StringVar(&o.plot, "plot", "", "")
	return f
}

// validate checks what the flags' own types cannot.
func (o options) validate(command string, known []contender) error {
	if err := check("-limiters", o.limiters, names(known)); err != nil {
		return err
	}
	if err := check("-workload", o.workloads, kinds); err != nil {
		return err
	}
	if err := within("-goroutines", o.goroutines, maxGoroutines); err != nil {
		return err
	}
	if err := within("-users", o.users, maxUsers); err != nil {
		return err
	}
	if command != "compare" && (len(o.users) > 1 || len(o.goroutines) > 1) {
		return fmt.Errorf("-users %v, -goroutines %v: want one number each", &o.users, &o.goroutines)
	}
	if err := within("-rounds", numberList{o.rounds}, maxRounds); err != nil {
		return err
	}
	if o.duration < time.Millisecond || o.duration > maxDuration {
		return fmt.Errorf("-duration: %v: want 1ms to %v", o.duration, maxDuration)
	}
	if o.pool < 0 || o.pool > maxPool {
		return fmt.Errorf("-pool: %d: want 0 to %d", o.pool, maxPool)
	}
	return nil
}

// check returns an error if a list names something unknown, or something twice.
func check(flag string, words, known []string) error {
	for i, w := range words {
		if !slices.Contains(known, w) {
			return fmt.Errorf("%s: %q: want some of %s", flag, w, strings.Join(known, ", "))
		}
		if slices.Contains(words[:i], w) {
			return fmt.Errorf("%s: %q stands there twice", flag, w)
		}
	}
	return nil
}

// within returns an error if a number is out of range, or stands there twice.
func within(flag string, numbers []int, most int) error {
	for i, n := range numbers {
		if n < 1 || n > most {
			return fmt.Errorf("%s: %d: want 1 to %d", flag, n, most)
		}
		if slices.Contains(numbers[:i], n) {
			return fmt.Errorf("%s: %d stands there twice", flag, n)
		}
	}
	return nil
}
