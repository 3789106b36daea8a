// Command compare measures the rate limiter beside others for go-redis, on the same
// cluster, for the same users, under the same limit, in turn within one run.
//
//	scripts/bench.sh                            six servers, the whole comparison, the table
//	scripts/bench.sh -plot bench.svg            and a picture of it
//	scripts/bench.sh pause                      one primary hangs: what the others' users notice
//	go run . -addrs 127.0.0.1:7001              on a cluster that runs already
//
// Servers and client share the machine, and others may share it with them, so a number of
// decisions a second means little by itself. What means something is a ratio of two limiters that
// were measured one after the other; it is formed within a round, and the median
// over the rounds is shown.
//
// Before anything is measured each limiter is asked whether it counts right, and while it is
// measured its counters are read back and compared with the decisions that it gave: a limiter
// that loses counts is fast for nothing.
//
// The exit status: 0 if this limiter counted right, whatever the others did; 1 if it
// did not; 2 if there is nothing to judge, since the usage was wrong or the cluster cannot be reached.
//
// # Where new things go
//
// Another limiter is a file with a contender and its entry in contenders; another workload is
// a kind in workload.go; another column is a field of sample, of summary and of the table.
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

	"github.com/redis/go-redis/v9"
)

// The exit statuses.
const (
	exitOK     = 0 // this limiter counted right
	exitFailed = 1 // it did not
	exitUsage  = 2 // nothing to judge
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // the second signal ends the process
	redis.SetLogger(silence{})
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// silence is where go-redis's own messages go: what they mean for a limiter is an error of its
// decisions, and those are counted.
type silence struct{}

func (silence) Printf(context.Context, string, ...any) {}

// run is the program without its process: what it does is on stdout and stderr and in the exit
// status. When ctx ends, so does the measuring, and what was measured is shown.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	return (&program{stdout: stdout, stderr: stderr, contenders: contenders}).run(ctx, args)
}

// A program is what the tests replace parts of.
type program struct {
	stdout, stderr io.Writer
	contenders     []contender // that can be chosen
}

func (p *program) run(ctx context.Context, args []string) int {
	work := (*trial).compare
	name := "compare"
	if len(args) > 0 && args[0] == "pause" {
		work, name, args = (*trial).pause, "compare pause", args[1:]
	}
	o, err := parse(name, args, p.contenders)
	if errors.Is(err, errHelp) {
		fmt.Fprint(p.stdout, usages[name])
		return exitOK
	}
	status := exitUsage
	if err == nil {
		status, err = p.trial(ctx, o, work)
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

// progress says on stderr what is being done, a line each.
func (p *program) progress(format string, args ...any) {
	fmt.Fprintf(p.stderr, format+"\n", args...)
}
