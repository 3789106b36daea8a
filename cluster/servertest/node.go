package servertest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// A Node is one server of a [Cluster]. Address, ID and client stay the same when it is restarted.
type Node struct {
	Addr string // 127.0.0.1:port, for clients and for its peers
	ID   string // what it is called in CLUSTER NODES and CLUSTER SLOTS

	// Client talks to this node alone, follows no redirect, and sends each command
	// once. A command that gets no answer fails after 5 s, or when its context ends.
	Client *redis.Client

	bin  string
	dir  string
	args []string

	mu   sync.Mutex
	proc *process // nil when it does not run
}

// PID is the id of the server's process, or 0 while it does not run. A restart changes it.
func (n *Node) PID() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.proc == nil {
		return 0
	}
	return n.proc.pid()
}

// startNode starts a server in the folder dir, on a port that is free.
func startNode(ctx context.Context, bin, dir string, cfg config) (*Node, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	var errs []error
	// Between the look at the port and the server's bind, another process may take it.
	for range 5 {
		port, err := FreePort()
		if err != nil {
			return nil, err
		}
		n := newNode(bin, dir, net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), cfg)
		if err = n.start(ctx); err == nil {
			if n.ID, err = n.Client.ClusterMyID(ctx).Result(); err == nil {
				return n, nil
			}
			n.stop()
		}
		_ = n.Client.Close()
		errs = append(errs, err)
		if !errors.Is(err, errPortTaken) {
			break
		}
	}
	return nil, errors.Join(errs...)
}

func newNode(bin, dir, addr string, cfg config) *Node {
	host, port, _ := net.SplitHostPort(addr)
	appendOnly := "no"
	if cfg.appendOnly {
		appendOnly = "yes"
	}
	n := &Node{
		Addr: addr,
		bin:  bin,
		dir:  dir,
		args: append([]string{
			"--bind", host,
			"--port", port,
			"--dir", dir,
			"--logfile", logFile,
			"--save", "",
			"--appendonly", appendOnly,
			// By default a server whose disk is slow may answer up to 2 s before it writes, and
			// then a kill loses what it acknowledged. This way it always writes first, if only
			// into the system's memory, which outlives the process.
			"--appendfsync", "no",
			"--cluster-enabled", "yes",
			"--cluster-node-timeout", strconv.FormatInt(cfg.nodeTimeout.Milliseconds(), 10),
			// A replica starts to copy at once, not after 5 s; and counts as a copy
			// when the primary next pings it, which is every 10 s by default.
			"--rdb-del-sync-files", "yes", // or a replica that restarts serves old counts from its copy's file
			"--repl-diskless-sync-delay", "0",
			"--repl-ping-replica-period", "1",
		}, cfg.extra...),
	}
	n.Client = redis.NewClient(&redis.Options{
		Addr:                  n.Addr,
		Protocol:              2,
		DisableIdentity:       true,
		MaxRetries:            -1,
		DialerRetries:         1,
		DialTimeout:           time.Second,
		ReadTimeout:           5 * time.Second,
		ContextTimeoutEnabled: true,
	})
	return n
}

var processID = regexp.MustCompile(`(?m)^process_id:(\d+)\r?$`)

// start starts the server and waits until it answers. If it does not, it is ended again.
func (n *Node) start(ctx context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.proc != nil {
		return fmt.Errorf("%s runs already", n.Addr)
	}
	// The server's own log goes there too, but not what is wrong with its arguments.
	output, err := os.OpenFile(n.log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer output.Close()
	proc, err := startProcess(output, n.bin, n.args...)
	if err != nil {
		return err
	}
	err = until(ctx, func() error {
		select {
		case <-proc.done:
			return stop(fmt.Errorf("%s ended: %v", n.Addr, proc.err))
		default:
		}
		if err := reach(ctx, n.Client); err != nil {
			return err
		}
		info, err := n.Client.Info(ctx, "server").Result()
		if err != nil {
			return err
		}
		// The port may have gone to a server of somebody else's.
		if m := processID.FindStringSubmatch(info); m == nil || m[1] != strconv.Itoa(proc.pid()) {
			return fmt.Errorf("%s is answered by another process", n.Addr)
		}
		return n.Client.Ping(ctx).Err() // refused while it reads its append-only file
	})
	if err != nil {
		proc.kill()
		log := n.logTail()
		if bytes.Contains(log, []byte("Address already in use")) {
			err = fmt.Errorf("%w: %w", errPortTaken, err)
		}
		return fmt.Errorf("start %s: %w\n%s", n.bin, err, log)
	}
	n.proc = proc
	return nil
}

// stop ends the server, also one that is paused, and waits until it is gone.
func (n *Node) stop() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.proc != nil {
		n.proc.kill()
		n.proc = nil
	}
}

var errPortTaken = errors.New("its port or bus port is taken")

const logFile = "server.log"

func (n *Node) log() string { return filepath.Join(n.dir, logFile) }

// logTail is the end of the server's log, for the error that says it did not start.
func (n *Node) logTail() []byte {
	log, _ := os.ReadFile(n.log())
	return log[max(0, len(log)-1000):]
}
