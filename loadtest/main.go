// Command loadtest puts the rate limiter under load on a Redis Cluster, and then proves
// from what the nodes hold that it counted exactly.
//
//	go run ./loadtest                           on a cluster inside the process
//	go run ./loadtest -addrs 127.0.0.1:7001     on a real one
//	go run ./loadtest -addrs ... -fault kill@3s  while something breaks
//	go run ./loadtest boundary                  the known weakness of fixed windows
//
// Its exit status is the proof: 0 if every check of the audit holds, 1 if one does not,
// 2 if there is nothing to judge, since the usage was wrong, the cluster cannot be reached or a
// fault could not be made. (The command go run turns every status but 0 into 1.)
// Package audit says what is checked.
//
// # Where new things go
//
// The parts: options (flags and usage), target (the cluster and the limiter under test),
// trial (load, audit, report), reader and collector (counters from the nodes), disturbance (faults
// and what callers notice of them, and of what others do to the cluster). Another fault goes into
// package faults, and into the usage; another subcommand is a case of program.run, as boundary
// is; another algorithm is chosen in target and judged in audit; another column is a field
// of audit.Node and a value in report's nodeTable.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

// The exit statuses.
const (
	exitOK     = 0 // all checks hold
	exitFailed = 1 // one does not
	exitUsage  = 2 // nothing to judge
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // the second signal ends the process
	redis.SetLogger(silence{})
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// silence is where go-redis's own messages go: every failed dial is one, and
// what they mean for the run is in its report.
type silence struct{}

func (silence) Printf(context.Context, string, ...any) {}

// run is the program without its process: what it does is on stdout and stderr and in
// the exit status. When ctx ends, the load ends, and what was sent is audited.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	return newProgram(stdout, stderr).run(ctx, args)
}

// A program is what the tests replace parts of.
type program struct {
	stdout, stderr io.Writer

	// limiter makes the limiter under test.
	limiter func(setup) (underTest, error)

	// ticks gives the collector its ticks; the function ends them.
	ticks func(time.Duration) (<-chan time.Time, func())
}

func newProgram(stdout, stderr io.Writer) *program {
	return &program{
		stdout:  stdout,
		stderr:  stderr,
		limiter: newLimiter,
		ticks: func(every time.Duration) (<-chan time.Time, func()) {
			t := time.NewTicker(every)
			return t.C, t.Stop
		},
	}
}

func (p *program) run(ctx context.Context, args []string) int {
	work := p.trial
	name := "loadtest"
	if len(args) > 0 && args[0] == "boundary" {
		work, name, args = p.boundary, "loadtest boundary", args[1:]
	}
	o, err := parse(name, args)
	if errors.Is(err, errHelp) {
		fmt.Fprint(p.stdout, usages[name])
		return exitOK
	}
	status := exitUsage
	if err == nil {
		status, err = work(ctx, o)
	}
	if err != nil && status == exitOK {
		status = exitUsage // the result could not be written, or the cluster not be left
	}
	if err != nil {
		// errors.Join puts several causes on lines of their own; this is one line.
		fmt.Fprintf(p.stderr, "%s: %s\n", name, strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	return status
}
