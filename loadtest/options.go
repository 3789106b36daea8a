package main

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/slotlimit/slotlimit/keys"
	"github.com/slotlimit/slotlimit/limiter"
	"github.com/slotlimit/slotlimit/loadtest/faults"
	"github.com/slotlimit/slotlimit/loadtest/loadgen"
)

// options are the flags' values.
type options struct {
	addrs    string
	users    int64
	requests int64
	duration time.Duration // 0: until all requests are sent
	workers  int
	limit    limiter.Limit
	seed     uint64
	timeout  time.Duration
	grace    time.Duration
	prefix   string
	keep     bool
	json     string
	faults   faultList
	durable  bool
}

// faultList is a flag that may be given many times.
type faultList []faults.Fault

func (l *faultList) String() string {
	var texts []string
	for _, f := range *l {
		texts = append(texts, f.String())
	}
	return strings.Join(texts, " ")
}

func (l *faultList) Set(text string) error {
	f, err := faults.Parse(text)
	if err == nil {
		*l = append(*l, f)
	}
	return err
}

// errHelp says that -h was given.
var errHelp = flag.ErrHelp

// usages are the help texts, by command. A test holds them to the flags.
var usages = map[string]string{
	"loadtest": `usage: go run ./loadtest [flags]
       go run ./loadtest boundary [flags]      (see: go run ./loadtest boundary -h)

Puts the rate limiter under load on a Redis Cluster, then reads the counters
back from the nodes and reconciles them with what the callers were told.

Where
  -addrs LIST       nodes of the cluster, host:port, comma separated; one is enough.
                    Or a URL with user, password and TLS:
                    rediss://USER:PASSWORD@HOST:PORT?addr=HOST2:PORT2
                    Without it: six nodes inside this process.
  -timeout D        longest time for one call, redirects and repeats included (1s)
  -prefix TEXT      what the Redis keys start with, and no others do (lt- and random
                    digits)

Load
  -users N          users, each as likely as any other (200)
  -requests N       requests to send (30000; with -duration or -fault as many as
                    the time allows)
  -duration D       the load goes on for so long (until all requests are sent; with
                    -fault until 10s after the last fault is over)
  -workers N        requests under way at one time (64)
  -limit LIMIT      [NAME=]RATE/PERIOD (100/1m)
  -seed N           the same seed sends requests for the same users (1)

  -durable          count with WAIT: an attempt is acknowledged only when a replica
                    has it, too

Faults
  -fault NAME@TIME  break something at a time after the start of the load, such as
                    kill@3s; NAME:ARG@TIME says how much or how long. Repeatable. Each
                    fault is for the next primary, starting from one that -seed chooses.
                      failover        CLUSTER FAILOVER: nothing is lost
                      takeover        CLUSTER FAILOVER TAKEOVER: it may lose counts
                      kill            end a primary; started again after the load
                      restart         end a primary and start it again at once
                      pause:5s        stop a primary, and let it run on
                      partition:5s    cut a primary off from its peers
                      reshard:100     move slots to the next primary, key by key
                      migrate:2s      leave slots half moved for a time, and then finish
                      flush:2s        SCRIPT FLUSH on all nodes, again and again
                      clientpause:2s  CLIENT PAUSE on a primary
                      disconnect      CLIENT KILL of all clients, on all nodes
                    kill, restart, pause and partition need nodes on this machine: as
                    processes, or in Docker containers, as partition always does.

Audit
  -grace D          how long a counter outlives its window, at most 10m: time in
                    which it can be read (10m)
  -keep             leave the counters on the nodes instead of removing them
  -json FILE        write the result to a file, too

Exit status
  0   every check holds
  1   a check does not hold
  2   nothing to judge: wrong usage, or the cluster cannot be reached, or a fault
      cannot be made

An interrupt (Ctrl-C) ends the load; what was sent is audited. A second one kills.
`,
	"loadtest boundary": `usage: go run ./loadtest boundary [flags]

Shows the known weakness of fixed windows: a burst at the end of a window and
another at the start of the next pass twice the rate within one period.

  -addrs LIST       nodes of the cluster, or a URL, as for the load test. Without it:
                    six nodes inside this process, whose clocks are moved.
  -timeout D        longest time for one call (1s)
  -prefix TEXT      what the Redis keys start with (lt- and random digits)
  -workers N        requests under way at one time (64)
  -limit LIMIT      [NAME=]RATE/PERIOD (100/1m; with -addrs, where it waits for a
                    real boundary, 100/2s)

Exit status
  0   exactly twice the rate passed
  1   another number passed
  2   nothing to judge: wrong usage, or the cluster cannot be reached
`,
}

// parse reads the arguments of a command. Every error is one line.
func parse(command string, args []string) (options, error) {
	var o options
	flags := o.flags(command)
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("unknown argument %q; -h shows the usage", flags.Arg(0))
	}
	given := map[string]bool{}
	flags.Visit(func(f *flag.Flag) { given[f.Name] = true })
	if command == "loadtest boundary" && o.addrs != "" && !given["limit"] {
		o.limit = limiter.Per(100, 2*time.Second)
	}
	if !given["prefix"] {
		o.prefix = randomPrefix()
	} else if o.prefix == "" {
		return o, errors.New("-prefix: want at least one character")
	}
	if given["duration"] && o.duration <= 0 {
		return o, fmt.Errorf("-duration: %v: want more than 0", o.duration)
	}
	if given["requests"] && o.requests < 1 {
		return o, fmt.Errorf("%d requests: want at least 1", o.requests)
	}
	if len(o.faults) > 0 && !given["duration"] && !given["requests"] {
		o.duration = faults.Needs(o.faults)
	}
	if o.duration > 0 && !given["requests"] {
		o.requests = 0
	}
	return o, o.validate(command)
}

// flags returns the flags of a command, which write into the options.
func (o *options) flags(command string) *flag.FlagSet {
	f := flag.NewFlagSet(command, flag.ContinueOnError)
	f.SetOutput(io.Discard) // errors are printed by the caller, once
	f.StringVar(&o.addrs, "addrs", "", "")
	f.DurationVar(&o.timeout, "timeout", time.Second, "")
	f.StringVar(&o.prefix, "prefix", "", "")
	f.IntVar(&o.workers, "workers", 64, "")
	f.TextVar(&o.limit, "limit", limiter.PerMinute(100), "")
	if command != "loadtest" {
		o.grace = limiter.DefaultGrace
		return f
	}
	f.Int64Var(&o.users, "users", 200, "")
	f.Int64Var(&o.requests, "requests", 30000, "")
	f.DurationVar(&o.duration, "duration", 0, "")
	f.Var(&o.faults, "fault", "")
	f.BoolVar(&o.durable, "durable", false, "")
	f.Uint64Var(&o.seed, "seed", 1, "")
	f.DurationVar(&o.grace, "grace", keys.MaxGrace, "")
	f.BoolVar(&o.keep, "keep", false, "")
	f.StringVar(&o.json, "json", "", "")
	return f
}

func (o options) load() loadgen.Load {
	return loadgen.Load{
		Schedule: loadgen.Schedule{Seed: o.seed, Users: o.users},
		Requests: o.requests,
		Workers:  o.workers,
		Duration: o.duration,
	}
}

// validate checks what the flags' own types cannot.
func (o options) validate(command string) error {
	if _, err := keys.New(o.prefix); err != nil {
		return fmt.Errorf("-prefix: %w", err)
	}
	if o.timeout <= 0 {
		return fmt.Errorf("-timeout: %v: want more than 0", o.timeout)
	}
	if o.grace < time.Millisecond || o.grace > keys.MaxGrace || o.grace%time.Millisecond != 0 {
		return fmt.Errorf("-grace: %v: want whole milliseconds up to %v", o.grace, keys.MaxGrace)
	}
	for _, f := range o.faults {
		if o.duration > 0 && f.At >= o.duration {
			return fmt.Errorf("-fault %v: the load ends before, after %v", f, o.duration)
		}
	}
	if command == "loadtest" {
		return o.load().Validate()
	}
	if o.workers < 1 || o.workers > loadgen.MaxWorkers {
		return fmt.Errorf("%d workers: want 1 to %d", o.workers, loadgen.MaxWorkers)
	}
	if o.limit.Rate < 1 || o.limit.Rate > maxBoundaryRate {
		return fmt.Errorf("-limit: a rate of %d: want 1 to %d, to see a burst", o.limit.Rate, maxBoundaryRate)
	}
	return nil
}

func randomPrefix() string {
	var id [6]byte
	_, _ = rand.Read(id[:]) // never fails
	return "lt-" + hex.EncodeToString(id[:])
}
