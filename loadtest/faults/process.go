package faults

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// A process is a server on this computer.
type process struct {
	node *Node
	pid  int
	argv []string // by which it is started again
	dir  string   // its working folder
	why  error    // it cannot be started again
}

func findProcess(ctx context.Context, n *Node, port string) (*process, error) {
	info, err := serverInfo(ctx, n.client)
	if err != nil {
		return nil, err
	}
	pid, err := strconv.Atoi(info["process_id"])
	if err != nil {
		return nil, errors.New("INFO names no process_id")
	}
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return nil, err
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		return nil, err
	}
	// Its own number of itself may be that of a stranger here, if it is in a container.
	if !isServer(line) || !listens(pid, number) {
		return nil, fmt.Errorf("process %d is no server at port %s", pid, port)
	}
	p := &process{node: n, pid: pid}
	if p.dir, err = os.Readlink(fmt.Sprintf("/proc/%d/cwd", pid)); err != nil {
		return nil, err
	}
	p.argv, p.why = commandLine(ctx, n, line, info)
	return p, nil
}

func serverInfo(ctx context.Context, c *redis.Client) (map[string]string, error) {
	text, err := c.Info(ctx, "server").Result()
	return fields(text), err
}

func isServer(cmdline []byte) bool {
	return bytes.Contains(cmdline, []byte("redis")) || bytes.Contains(cmdline, []byte("valkey"))
}

// listens says whether a process takes connections at a port.
func listens(pid, port int) bool {
	sockets := map[string]bool{}
	for _, table := range []string{"tcp", "tcp6"} {
		content, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", pid, table))
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(content)) {
			// number, local address:port, remote one, state (0A: listening), ..., inode
			f := strings.Fields(line)
			if len(f) > 9 && f[3] == "0A" && strings.HasSuffix(f[1], fmt.Sprintf(":%04X", port)) {
				sockets["socket:["+f[9]+"]"] = true
			}
		}
	}
	open, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	return slices.ContainsFunc(open, func(fd string) bool {
		target, err := os.Readlink(fd)
		return err == nil && sockets[target]
	})
}

// commandLine returns how a server is started as this one is.
//
// A server writes its title over its command line, so that this is lost: it is put
// together from what its settings differ from the same program's defaults.
func commandLine(ctx context.Context, n *Node, line []byte, info map[string]string) ([]string, error) {
	argv := strings.Split(strings.TrimRight(string(line), "\x00"), "\x00")
	if len(argv) > 1 {
		return argv, nil // it did not
	}
	program := info["executable"]
	if _, err := os.Stat(program); err != nil {
		return nil, fmt.Errorf("its program: %w", err)
	}
	now, err := n.client.ConfigGet(ctx, "*").Result()
	if err != nil {
		return nil, fmt.Errorf("its settings: %w", err)
	}
	defaults, err := defaultSettings(ctx, program)
	if err != nil {
		return nil, fmt.Errorf("the default settings of %s: %w", program, err)
	}
	argv = []string{program}
	file := info["config_file"]
	if file != "" {
		argv = append(argv, file)
	}
	for _, name := range slices.Sorted(maps.Keys(now)) {
		given, known := defaults[name]
		secret := file != "" && secretSetting.MatchString(name) // in the file, and not for others to see
		if (!known || given != now[name] || slices.Contains(probed, name)) && !secret && name != "unixsocket" {
			argv = append(argv, "--"+name, now[name])
		}
	}
	return argv, nil
}

var secretSetting = regexp.MustCompile(`pass|auth|masteruser`)

// probed are the settings with which defaultSettings starts a server: they differ always.
var probed = []string{"port", "dir", "save"}

// defaultSettings starts the program for a moment, where nobody can reach it by a port.
func defaultSettings(ctx context.Context, program string) (map[string]string, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	dir, err := os.MkdirTemp("", "faults")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	socket := filepath.Join(dir, "s")
	cmd := exec.CommandContext(ctx, program, "--port", "0", "--unixsocket", socket, "--dir", dir, "--save", "")
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	c := redis.NewClient(&redis.Options{Network: "unix", Addr: socket, DisableIdentity: true, MaxRetries: -1, DialerRetries: 1})
	defer c.Close()
	// The socket is there before anyone listens on it, and the pool of a client that dials in
	// vain goes on doing so.
	err = until(ctx, func() error {
		conn, err := net.Dial("unix", socket)
		if err == nil {
			err = conn.Close()
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return c.ConfigGet(ctx, "*").Result()
}

func (p *process) String() string { return fmt.Sprintf("process %d", p.pid) }

func (p *process) signal(s os.Signal) error {
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p.pid))
	if err != nil || !isServer(line) { // it has ended, and its number may be another's by now
		return fmt.Errorf("%v runs no more", p)
	}
	found, err := os.FindProcess(p.pid)
	if err != nil {
		return err
	}
	return found.Signal(s)
}

func (p *process) Kill(ctx context.Context) error {
	if err := p.signal(os.Kill); err != nil {
		return err
	}
	return until(ctx, func() error {
		if !p.ended() {
			return fmt.Errorf("%v has not ended", p)
		}
		return nil
	})
}

// ended reports whether the process has let go of all that it held: its port, and the
// lock on its cluster's configuration, without which its successor ends at once. It
// loses its command line before that. One whose parent has not asked for it yet
// stays, as a zombie (Z).
func (p *process) ended() bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.pid))
	if err != nil {
		return true
	}
	// pid (name) state ...; the name may hold anything
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	return len(fields) > 0 && (fields[0] == "Z" || fields[0] == "X")
}

// Start starts the server so that it outlives this process: through a shell that ends
// at once, as nobody's child, and without the terminal.
func (p *process) Start(ctx context.Context) error {
	if p.why != nil {
		return p.why
	}
	cmd := exec.CommandContext(ctx, "/bin/sh", append([]string{"-c", detach, "sh"}, p.argv...)...)
	cmd.Dir = p.dir
	if err := cmd.Run(); err != nil {
		return err
	}
	return until(ctx, func() error {
		if err := reach(ctx, p.node.client); err != nil {
			return err
		}
		info, err := serverInfo(ctx, p.node.client)
		if err != nil {
			return err
		}
		pid, err := strconv.Atoi(info["process_id"])
		if err == nil && pid != p.pid {
			p.pid = pid
			return nil
		}
		return fmt.Errorf("it is not the new process that answers (%w)", errors.Join(err))
	})
}

// detach leaves the terminal's group too, where there is a program for it: an interrupt
// typed there is not for the server.
const detach = `s=; ! command -v setsid >/dev/null || s=setsid; $s "$@" </dev/null >/dev/null 2>&1 &`

func (p *process) Pause(context.Context) error    { return p.signal(pauseSignal) }
func (p *process) Resume(context.Context) error   { return p.signal(resumeSignal) }
func (p *process) CanStart(context.Context) error { return p.why }

func (p *process) Cut(ctx context.Context) error { return p.CanCut(ctx) }
func (p *process) Join(context.Context) error    { return nil }
func (p *process) CanCut(context.Context) error {
	return fmt.Errorf("%v shares its network with its peers: only a container can be cut off from them", p)
}
