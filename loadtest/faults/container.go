package faults

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"strings"
	"time"
)

// A container is a server in a Docker container that publishes its port.
type container struct {
	node     *Node
	id, name string
	network  string // the one by which the peers reach it
	ip       string // there
	aliases  []string
}

// dockerTimeout is how long one command to the engine may take.
const dockerTimeout = 30 * time.Second

func docker(ctx context.Context, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, dockerTimeout)
	defer cancel()
	var errs bytes.Buffer
	cmd := exec.CommandContext(ctx, "docker", args...)
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		said, _, _ := strings.Cut(strings.TrimSpace(errs.String()), "\n")
		return "", fmt.Errorf("docker %s: %w %s", args[0], err, said)
	}
	return strings.TrimSpace(string(out)), nil
}

func findContainer(ctx context.Context, n *Node, port string) (*container, error) {
	found, err := docker(ctx, "ps", "--no-trunc", "--filter", "publish="+port, "--format", "{{.ID}} {{.Names}}")
	if err != nil {
		return nil, err
	}
	lines := strings.Fields(found)
	if len(lines) != 2 {
		return nil, fmt.Errorf("%d containers publish port %s", len(lines)/2, port)
	}
	c := &container{node: n, id: lines[0], name: lines[1]}
	text, err := docker(ctx, "inspect", "--format", "{{json .NetworkSettings.Networks}}", c.id)
	if err != nil {
		return nil, err
	}
	var networks map[string]struct {
		IPAddress string
		Aliases   []string
	}
	if err := json.Unmarshal([]byte(text), &networks); err != nil {
		return nil, fmt.Errorf("docker inspect: %w", err)
	}
	ip, _, err := net.SplitHostPort(n.Bus)
	for name, at := range networks {
		if err == nil && at.IPAddress == ip {
			c.network, c.ip, c.aliases = name, ip, at.Aliases
		}
	}
	return c, nil
}

func (c *container) String() string { return "container " + c.name }

func (c *container) do(ctx context.Context, args ...string) error {
	_, err := docker(ctx, args...)
	return err
}

func (c *container) Kill(ctx context.Context) error   { return c.do(ctx, "kill", c.id) }
func (c *container) Pause(ctx context.Context) error  { return c.do(ctx, "pause", c.id) }
func (c *container) Resume(ctx context.Context) error { return c.do(ctx, "unpause", c.id) }

func (c *container) Start(ctx context.Context) error {
	if err := c.do(ctx, "start", c.id); err != nil {
		return err
	}
	return until(ctx, func() error {
		if err := reach(ctx, c.node.client); err != nil {
			return err
		}
		_, err := serverInfo(ctx, c.node.client) // the engine takes connections before the server does
		return err
	})
}

func (c *container) CanStart(context.Context) error { return nil }

func (c *container) CanCut(context.Context) error {
	if c.network == "" {
		return errors.New(c.String() + " has no network with the address by which its peers know it, " + c.node.Bus)
	}
	return nil
}

func (c *container) Cut(ctx context.Context) error {
	if err := c.CanCut(ctx); err != nil {
		return err
	}
	return c.do(ctx, "network", "disconnect", c.network, c.id)
}

// Join gives the node its old address: its peers know it by that.
func (c *container) Join(ctx context.Context) error {
	args := []string{"network", "connect", "--ip", c.ip}
	for _, alias := range c.aliases {
		if !strings.HasPrefix(c.id, alias) { // the engine adds that one itself
			args = append(args, "--alias", alias)
		}
	}
	return c.do(ctx, append(args, c.network, c.id)...)
}
