package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// clusterScript is seen from this module's folder, where go run and go test are.
const clusterScript = "../../scripts/cluster.sh"

// defaultPort leaves the ports of the compose cluster and of the checks alone.
const defaultPort = "7401"

// servers are six redis-server processes of this run's own.
type servers struct {
	addrs []string
	dir   string
	port  string
}

// startServers starts them.
func startServers(ctx context.Context) (*servers, error) {
	if _, err := os.Stat(clusterScript); err != nil {
		return nil, fmt.Errorf("no cluster given by -addrs, and no servers: %w: run this in loadtest/compare", err)
	}
	dir, err := os.MkdirTemp("", "compare")
	if err != nil {
		return nil, err
	}
	s := &servers{dir: dir, port: os.Getenv("PORT")}
	if s.port == "" {
		s.port = defaultPort
	}
	s.addrs = []string{"127.0.0.1:" + s.port}
	if err := s.script(ctx, "start"); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return s, nil
}

// stop ends them and removes their files.
func (s *servers) stop() error {
	return errors.Join(s.script(context.Background(), "stop"), os.RemoveAll(s.dir))
}

func (s *servers) script(ctx context.Context, verb string) error {
	cmd := exec.CommandContext(ctx, clusterScript, verb, filepath.Join(s.dir, "cluster"))
	// Killed, it would leave its servers behind; interrupted, it takes them back.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.Env = append(os.Environ(), "PORT="+s.port)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w: %s", clusterScript, verb, err, strings.TrimSpace(string(out)))
	}
	return nil
}
