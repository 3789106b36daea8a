package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/moby/moby/api/types/container"
	docker "github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"
	"github.com/redis/go-redis/v9"
	"github.com/testcontainers/testcontainers-go"
	tcredis "github.com/testcontainers/testcontainers-go/modules/redis"
	"github.com/testcontainers/testcontainers-go/network"
	"github.com/testcontainers/testcontainers-go/wait"

	"github.com/slotlimit/slotlimit/cluster/servertest"
)

// TestContainers runs the load test on a cluster of six containers, each a host of
// its own to the others, as the machines of a real cluster are.
func TestContainers(t *testing.T) {
	members := startContainers(t)
	var addrs []string
	var clients []*redis.Client
	for _, m := range members {
		addrs = append(addrs, m.Client.Options().Addr)
		clients = append(clients, m.Client)
	}

	t.Run("a plain client needs no address map", func(t *testing.T) {
		plain := redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs[:1]})
		defer plain.Close()
		for i := range 100 {
			if err := plain.Set(t.Context(), fmt.Sprint("plain:", i), i, time.Hour).Err(); err != nil {
				t.Fatal(err)
			}
		}
		if got := servertest.CheckKeys(t, clients, "plain:"); got != 100 {
			t.Errorf("%d keys of 100", got)
		}
	})

	t.Run("the load test proves the counters", func(t *testing.T) {
		const users = 100
		var stdout, stderr bytes.Buffer
		status := run(t.Context(), []string{
			"-addrs", addrs[5], "-users", strconv.Itoa(users), "-requests", "20000", "-limit", "50/1h", "-prefix", "containers", "-keep",
		}, &stdout, &stderr)
		if status != exitOK {
			t.Fatalf("exit status %d\n%s\n%s", status, &stdout, &stderr)
		}
		// A look of our own. An hour may end in between, and every user get a second counter.
		if got := servertest.CheckKeys(t, clients, "containers:"); got < users || got > 2*users {
			t.Errorf("%d counters of %d users", got, users)
		}
	})
}

// startContainers makes a cluster of six containers, or skips the test. They go with the test.
//
// Each has two networks. On "bus", which leads nowhere else, the nodes know each other
// by their addresses. The engine's own bridge carries the published port, which has the same number
// inside and out; and clients are told, as the node's "host name", where that is.
// So any client on this machine can use what CLUSTER SLOTS and MOVED say.
func startContainers(t *testing.T) []servertest.Member {
	t.Helper()
	host, image := requireDocker(t)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	bus, err := network.New(ctx, network.WithInternal())
	testcontainers.CleanupNetwork(t, bus)
	if err != nil {
		t.Fatal(err)
	}
	members := make([]servertest.Member, 6)
	containers := make([]testcontainers.Container, len(members))
	errs := make([]error, len(members))
	var wg sync.WaitGroup
	t.Cleanup(func() {
		for _, c := range containers {
			wg.Go(func() {
				if err := testcontainers.TerminateContainer(c, testcontainers.StopTimeout(0)); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	})
	for i := range members {
		wg.Go(func() { members[i], containers[i], errs[i] = startContainer(ctx, image, host, bus) })
	}
	wg.Wait()
	for _, m := range members {
		if m.Client != nil {
			t.Cleanup(func() { m.Client.Close() })
		}
	}
	err = errors.Join(errs...)
	if err == nil {
		err = servertest.Form(ctx, members)
	}
	if err != nil {
		t.Fatal(err)
	}
	return members
}

// startContainer starts one server. If it fails, there may be a container all the same.
func startContainer(ctx context.Context, image, host string, bus *testcontainers.DockerNetwork) (m servertest.Member, c testcontainers.Container, err error) {
	var port int
	for range 3 { // a port that was free may be taken by now
		if port, err = servertest.FreePort(); err != nil {
			return m, nil, err
		}
		// No nil pointer into c: it would not be nil.
		r, runErr := tcredis.Run(ctx, image, nodeOptions(host, port, bus)...)
		if err = runErr; err == nil {
			c = r
			break
		}
		if r == nil {
			return m, nil, err
		}
		if !strings.Contains(err.Error(), "already") { // allocated, or in use
			return m, r, err
		}
		if err := testcontainers.TerminateContainer(r); err != nil {
			return m, r, err
		}
	}
	if err != nil {
		return m, nil, err
	}
	info, err := c.Inspect(ctx)
	if err != nil {
		return m, c, err
	}
	at := info.NetworkSettings.Networks[bus.Name]
	if at == nil {
		return m, c, fmt.Errorf("the container of port %d is not on the network %s", port, bus.Name)
	}
	m.Bus = net.JoinHostPort(at.IPAddress.String(), strconv.Itoa(port))
	m.Client = redis.NewClient(&redis.Options{
		Addr:                  net.JoinHostPort(host, strconv.Itoa(port)),
		MaxRetries:            -1,
		ContextTimeoutEnabled: true,
	})
	return m, c, nil
}

func nodeOptions(host string, port int, bus *testcontainers.DockerNetwork) []testcontainers.ContainerCustomizer {
	inside := docker.MustParsePort(fmt.Sprintf("%d/tcp", port))
	binding := docker.PortBinding{HostPort: strconv.Itoa(port)}
	// No password is asked for, so nobody else needs to reach it.
	if ip, err := netip.ParseAddr(host); err == nil && ip.IsLoopback() {
		binding.HostIP = ip
	}
	return []testcontainers.ContainerCustomizer{
		network.WithBridgeNetwork(),
		network.WithNetwork(nil, bus),
		testcontainers.WithExposedPorts(inside.String()),
		testcontainers.WithHostConfigModifier(func(c *container.HostConfig) {
			c.PortBindings = docker.PortMap{inside: {binding}}
		}),
		testcontainers.WithCmdArgs(
			"--port", strconv.Itoa(port),
			"--protected-mode", "no",
			"--save", "",
			"--cluster-enabled", "yes",
			"--cluster-node-timeout", "2000",
			"--cluster-announce-hostname", host,
			"--cluster-preferred-endpoint-type", "hostname",
			"--rdb-del-sync-files", "yes", // or a replica that restarts serves old counts from its copy's file
			"--repl-diskless-sync-delay", "0",
			"--repl-ping-replica-period", "1",
		),
		// In place of the module's own, which waits for port 6379, and not long
		// enough for six that start at once.
		testcontainers.WithWaitStrategyAndDeadline(time.Minute, wait.ForLog("Ready to accept connections")),
	}
}

// requireDocker skips the test, within seconds, unless there is an engine that has, or
// can get, the images that the test needs. It returns where published ports are
// found, and the image of Redis.
func requireDocker(t *testing.T) (host, image string) {
	t.Helper()
	// On this machine, if the engine is. testcontainers thinks otherwise wherever it finds
	// a file /.dockerenv, and not only containers have one.
	engine := os.Getenv("DOCKER_HOST")
	if _, set := os.LookupEnv("TESTCONTAINERS_HOST_OVERRIDE"); !set && (engine == "" || strings.HasPrefix(engine, "unix:")) {
		t.Setenv("TESTCONTAINERS_HOST_OVERRIDE", "127.0.0.1")
	}
	provider, err := testcontainers.NewDockerProvider()
	if err != nil {
		servertest.Skip(t, "no Docker engine answers (%v): start one, or set DOCKER_HOST", err)
	}
	t.Cleanup(func() { provider.Close() })
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	if err := provider.Health(ctx); err != nil {
		servertest.Skip(t, "the Docker engine does not answer (%v): start one, or set DOCKER_HOST", err)
	}
	if image = os.Getenv("REDIS_IMAGE"); image == "" {
		image = "redis:8"
	}
	if err := requireImage(ctx, provider, image); err != nil {
		servertest.Skip(t, "the Docker engine has no image %s and cannot get it (%v): docker pull it, or make one by "+
			"scripts/redis-image.sh and set REDIS_IMAGE=redis-local:7", image, err)
	}
	if !provider.Config().Config.RyukDisabled {
		//lint:ignore SA1019 there is no other way to learn which image would be pulled
		reaper := testcontainers.ReaperDefaultImage
		if err := requireImage(ctx, provider, reaper); err != nil {
			servertest.Skip(t, "the Docker engine has no image %s, by which testcontainers cleans up, and cannot get it (%v): "+
				"docker pull it, or set TESTCONTAINERS_RYUK_DISABLED=true", reaper, err)
		}
	}
	if host, err = provider.DaemonHost(ctx); err != nil {
		t.Fatal(err)
	}
	return host, image
}

// registrySilence is how long a registry may say nothing before it counts as out of reach.
const registrySilence = 10 * time.Second

// requireImage gets an image that the engine does not have. testcontainers would too, but
// it tries for as long as a quarter of an hour when there is no way to.
func requireImage(ctx context.Context, provider *testcontainers.DockerProvider, image string) error {
	if provider.Config().Config.HubImageNamePrefix != "" {
		return nil // it takes images from a registry of the user's: that one will answer
	}
	if _, err := provider.Client().ImageInspect(ctx, image); err == nil {
		return nil
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silent := time.AfterFunc(registrySilence, func() {
		cancel(fmt.Errorf("the registry says nothing for %v", registrySilence))
	})
	defer silent.Stop()
	pull, err := provider.Client().ImagePull(ctx, image, client.ImagePullOptions{})
	if err != nil {
		return errors.Join(err, context.Cause(ctx))
	}
	for message, err := range pull.JSONMessages(ctx) {
		if err == nil && message.Error != nil {
			err = message.Error
		}
		if err != nil {
			return errors.Join(err, context.Cause(ctx))
		}
		silent.Reset(registrySilence)
	}
	_, err = provider.Client().ImageInspect(ctx, image)
	return err
}
