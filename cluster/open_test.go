package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/slotlimit/slotlimit/cluster"
	"github.com/slotlimit/slotlimit/cluster/clustertest"
	"github.com/slotlimit/slotlimit/cluster/servertest"
	"github.com/slotlimit/slotlimit/keys"
)

func TestMain(m *testing.M) { os.Exit(servertest.Main(m).Run()) }

// open opens a client with time-outs fit for tests, closed with the test.
func open(t testing.TB, cfg cluster.Config) *cluster.Client {
	t.Helper()
	if cfg.Timeout == 0 {
		cfg.Timeout = 300 * time.Millisecond
	}
	client, err := cluster.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

// refused returns an address that refuses connections.
func refused(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// Each way to fail says what is wrong, with which address, and what to do.
func TestOpenRefuses(t *testing.T) {
	whole, holed := clustertest.Start(t), clustertest.Start(t)
	for _, slot := range []int{7, 8, 9, 16383} {
		if err := holed.Unassign(slot); err != nil {
			t.Fatal(err)
		}
	}
	dead := refused(t)
	silent, err := net.Listen("tcp", "127.0.0.1:0") // accepts, and answers nothing
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	announcesDead := cluster.Config{Addrs: whole.Addrs()[3:4], AddrMap: map[string]string{}}
	for _, addr := range whole.Addrs()[:3] {
		announcesDead.AddrMap[addr] = dead
	}

	for name, c := range map[string]struct {
		cfg  cluster.Config
		want error
		text []string
	}{
		"no address":         {cluster.Config{}, cluster.ErrConfig, []string{"no address"}},
		"no port":            {cluster.Config{Addrs: []string{"localhost"}}, cluster.ErrConfig, []string{`"localhost"`}},
		"empty port":         {cluster.Config{Addrs: []string{"localhost:"}}, cluster.ErrConfig, []string{`"localhost:"`}},
		"negative time-out":  {cluster.Config{Addrs: []string{dead}, Timeout: -1}, cluster.ErrConfig, []string{"Timeout"}},
		"endless time-out":   {cluster.Config{Addrs: []string{dead}, DialTimeout: 1<<63 - 1}, cluster.ErrConfig, []string{"DialTimeout"}},
		"endless pool":       {cluster.Config{Addrs: []string{dead}, PoolSize: 1 << 40}, cluster.ErrConfig, []string{"PoolSize"}},
		"refused":            {cluster.Config{Addrs: []string{dead}}, cluster.ErrUnreachable, []string{dead, "refused"}},
		"all refused":        {cluster.Config{Addrs: []string{dead, silent.Addr().String()}}, cluster.ErrUnreachable, []string{dead, silent.Addr().String(), "timeout"}},
		"slots unserved":     {cluster.Config{Addrs: holed.Addrs()}, cluster.ErrSlotsUnserved, []string{"slots 7-9, slot 16383", "--cluster fix"}},
		"primaries hidden":   {announcesDead, cluster.ErrUnreachable, []string{whole.Addr(0), "AddrMap"}},
		"one of two answers": {cluster.Config{Addrs: []string{dead, whole.Addr(0)}}, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if c.cfg.Timeout == 0 {
				c.cfg.Timeout = 300 * time.Millisecond
			}
			client, err := cluster.Open(t.Context(), c.cfg)
			if err == nil {
				client.Close()
			}
			if !errors.Is(err, c.want) {
				t.Fatalf("%v, want %v", err, c.want)
			}
			for _, text := range c.text {
				if !strings.Contains(err.Error(), text) {
					t.Errorf("%q does not say %q", err, text)
				}
			}
		})
	}
}

func TestOpenOnNoCluster(t *testing.T) {
	c := clustertest.Start(t)
	// What a server without cluster-enabled says.
	c.Fail(clustertest.On(clustertest.AllNodes, "CLUSTER"), -1, "ERR This instance has cluster support disabled")
	_, err := cluster.Open(t.Context(), cluster.Config{Addrs: c.Addrs()})
	if !errors.Is(err, cluster.ErrNotCluster) || !strings.Contains(err.Error(), c.Addr(0)) || !strings.Contains(err.Error(), "cluster-enabled") {
		t.Errorf("%v, want ErrNotCluster with %s and what to do", err, c.Addr(0))
	}
}

// A service starts while a shard is between two primaries.
func TestOpenDuringFailover(t *testing.T) {
	c := clustertest.Start(t, clustertest.WithPartialCoverage())
	if err := c.Kill(0); err != nil {
		t.Fatal(err)
	}
	open(t, cluster.Config{Addrs: c.Addrs()})
}

func TestOpenHonoursContext(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err = cluster.Open(ctx, cluster.Config{Addrs: []string{silent.Addr().String()}, Timeout: time.Hour})
	if !errors.Is(err, cluster.ErrUnreachable) { // an hour later, if at all, without the context
		t.Errorf("%v, want ErrUnreachable", err)
	}
}

// Nodes that announce addresses which lead nowhere are reached by the map, the
// dialer gets what the map gives.
func TestAddrMap(t *testing.T) {
	c := clustertest.Start(t)
	var dialled atomic.Int64
	cfg := cluster.Config{
		Addrs:   []string{"127.0.0.9:6379"},
		AddrMap: map[string]string{"127.0.0.9:6379": c.Addr(0)},
		Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
			dialled.Add(1)
			return new(net.Dialer).DialContext(ctx, network, addr)
		},
	}
	client := open(t, cfg)
	for i := range 20 {
		if err := client.Set(t.Context(), fmt.Sprint(i), i, time.Minute).Err(); err != nil {
			t.Fatal(err)
		}
	}
	if dialled.Load() == 0 {
		t.Error("the dialer was not used")
	}
}

func TestParseURL(t *testing.T) {
	cfg, err := cluster.ParseURL("rediss://me:secret@a:7001?addr=b:7002&addr=c:7003&read_timeout=3s&pool_size=7")
	if err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(cfg.Addrs) != "[a:7001 b:7002 c:7003]" || cfg.Username != "me" || cfg.Password != "secret" ||
		cfg.TLS == nil || cfg.Timeout != 3*time.Second || cfg.PoolSize != 7 {
		t.Errorf("%+v", cfg)
	}
	for _, url := range []string{"", "http://a:1", "redis://me:secret@a:70 01", "redis://me:secret@a:1?nonsense=1"} {
		_, err := cluster.ParseURL(url)
		if !errors.Is(err, cluster.ErrConfig) || strings.Contains(err.Error(), "secret") {
			t.Errorf("ParseURL(%q): %v, want ErrConfig without the password", url, err)
		}
	}
}

func TestWrap(t *testing.T) {
	c := clustertest.Start(t)
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": c.Addr(0)}})
	defer ring.Close()
	for name, client := range map[string]redis.UniversalClient{
		"nil": nil, "nil cluster client": (*redis.ClusterClient)(nil), "nil client": (*redis.Client)(nil), "ring": ring,
	} {
		if got, err := cluster.Wrap(client); !errors.Is(err, cluster.ErrConfig) || got != nil {
			t.Errorf("%s: %v, %v, want ErrConfig", name, got, err)
		}
	}

	own := redis.NewClusterClient(&redis.ClusterOptions{Addrs: c.Addrs()})
	client, err := cluster.Wrap(own)
	if err != nil {
		t.Fatal(err)
	}
	if reply, err := client.Run(t.Context(), incr("{a}1")); err != nil || reply[0] != 1 {
		t.Errorf("Run: %v, %v", reply, err)
	}
	if client.Home(t.Context(), "{a}1") == "" {
		t.Error("no home")
	}
	if err := client.Close(); err != nil {
		t.Fatal(err)
	}
	if err := own.Ping(t.Context()).Err(); !errors.Is(err, redis.ErrClosed) {
		t.Errorf("the wrapped client after Close: %v, want it closed", err)
	}
	if _, err := client.Run(t.Context(), incr("{a}1")); !errors.Is(err, cluster.ErrUnavailable) {
		t.Errorf("Run after Close: %v, want ErrUnavailable", err)
	}
}

// A wrapped client that finds no cluster holds nobody up.
func TestWrapHung(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	client, err := cluster.Wrap(redis.NewClusterClient(&redis.ClusterOptions{
		Addrs: []string{silent.Addr().String()}, ReadTimeout: time.Hour, MaxRedirects: 1,
	}))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if home := client.Home(ctx, "k"); home != "" { // an hour later, if it waits
		t.Errorf("home %q", home)
	}
	if _, err := client.Run(ctx, incr("k")); !errors.Is(err, cluster.ErrUnavailable) {
		t.Errorf("%v, want ErrUnavailable", err)
	}
}

func TestWrapSingleServer(t *testing.T) {
	server := miniredis.RunT(t)
	client, err := cluster.Wrap(redis.NewClient(&redis.Options{Addr: server.Addr()}))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := client.Preload(t.Context(), incr("").Script); err != nil {
		t.Error(err)
	}
	if reply, err := client.Run(t.Context(), incr("k")); err != nil || reply[0] != 1 {
		t.Errorf("Run: %v, %v", reply, err)
	}
	topology, err := client.Topology(t.Context())
	if err != nil || len(topology.Shards) != 1 || topology.Shards[0].SlotCount() != keys.Slots {
		t.Errorf("Topology: %+v, %v, want one shard with every slot", topology, err)
	}
}

func TestTopology(t *testing.T) {
	c := clustertest.Start(t)
	client := open(t, cluster.Config{Addrs: c.Addrs()})
	if err := c.MoveSlot(100, 2); err != nil {
		t.Fatal(err)
	}
	topology, err := client.Topology(t.Context())
	if err != nil || len(topology.Shards) != 3 {
		t.Fatalf("%+v, %v", topology, err)
	}
	for slot := range keys.Slots {
		shard, ok := topology.Owner(slot)
		if want := c.Addr(c.Owner(slot)); !ok || shard.Primary.Addr != want {
			t.Fatalf("slot %d is %s's, want %s's", slot, shard.Primary.Addr, want)
		}
	}
	for i, want := range []string{"[slots 0-99 slots 101-5460]", "[slot 100 slots 10923-16383]", "[slots 5461-10922]"} {
		if got := fmt.Sprint(topology.Shards[i].Slots); got != want {
			t.Errorf("shard %d has %s, want %s", i, got, want)
		}
	}
	if n := topology.Shards[1].SlotCount(); n != 5462 {
		t.Errorf("%d slots, want 5462", n)
	}
	for _, s := range topology.Shards {
		if len(s.Replicas) != 1 || len(s.Primary.ID) != 40 {
			t.Errorf("shard %+v", s)
		}
	}
	if missing := topology.Unserved(); missing != nil {
		t.Errorf("unserved: %v", missing)
	}
	if missing := (cluster.Topology{}).Unserved(); fmt.Sprint(missing) != "[slots 0-16383]" {
		t.Errorf("unserved of nothing: %v", missing)
	}
	if _, ok := topology.Owner(keys.Slots); ok {
		t.Error("slot 16384 has an owner")
	}
}
