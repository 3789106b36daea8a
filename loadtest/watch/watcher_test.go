package watch_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/slotlimit/slotlimit/cluster"
	"github.com/slotlimit/slotlimit/cluster/clustertest"
	"github.com/slotlimit/slotlimit/cluster/servertest"
	"github.com/slotlimit/slotlimit/keys"
	"github.com/slotlimit/slotlimit/loadtest/audit"
	"github.com/slotlimit/slotlimit/loadtest/watch"
)

func TestMain(m *testing.M) {
	redis.SetLogger(silence{})
	servertest.VerifyMain(m)
}

// silence swallows the client's lines about nodes that are dead on purpose.
type silence struct{}

func (silence) Printf(context.Context, string, ...any) {}

// patience bounds how long a test waits for an event.
const patience = 20 * time.Second

// A post is a watcher and what it noticed.
type post struct {
	*watch.Watcher
	t      *testing.T
	events chan audit.Event
	seen   []audit.Event

	stopped bool
}

func (p *post) Stop() []audit.Event {
	p.stopped = true
	return p.Watcher.Stop()
}

func station(t *testing.T, addrs []string) *post {
	t.Helper()
	client, err := cluster.Open(t.Context(), cluster.Config{Addrs: addrs})
	if err != nil {
		t.Fatal(err)
	}
	p := &post{t: t, events: make(chan audit.Event, 100)}
	p.Watcher, err = watch.Start(t.Context(), client, 20*time.Millisecond, func(e audit.Event) { p.events <- e })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if !p.stopped {
			p.Stop()
		}
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// await returns the next event of this kind at this node. Others are kept in seen.
func (p *post) await(kind audit.EventKind, node string) audit.Event {
	p.t.Helper()
	limit := time.After(patience)
	for {
		select {
		case e := <-p.events:
			p.seen = append(p.seen, e)
			if e.From.IsZero() || e.To.Before(e.From) {
				p.t.Errorf("%v from %v to %v", e, e.From, e.To)
			}
			if e.Kind == kind && e.Node == node {
				return e
			}
		case <-limit:
			p.t.Fatalf("no %s of %s; seen: %v", kind, node, p.seen)
		}
	}
}

// covers says whether an event happened within a time, and fails if it cannot have.
func covers(t *testing.T, e audit.Event, from, to time.Time) {
	t.Helper()
	if e.From.After(to) || e.To.Before(from) {
		t.Errorf("%v was from %v to %v, which is not between %v and %v", e, e.From, e.To, from, to)
	}
}

func count(slots []audit.SlotRange) (n int) { return audit.Shard{Slots: slots}.SlotCount() }

// kinds lists what was noticed in all, in order.
func kinds(events []audit.Event) string {
	var all []string
	for _, e := range events {
		all = append(all, string(e.Kind))
	}
	return strings.Join(all, ", ")
}

func TestNoticesInProcess(t *testing.T) {
	c := clustertest.Start(t)
	p := station(t, c.Addrs())
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	began := time.Now()
	must(c.Failover(3))
	e := p.await(audit.Promotion, c.Addr(3))
	covers(t, e, began, time.Now())
	if e.Was != c.Addr(0) || count(e.Slots) != 5461 || e.Graceful || !strings.HasPrefix(e.Detail, "config epoch 1 -> ") {
		t.Errorf("failover: %+v", e)
	}

	plan := p.Plan(c.Addr(0))
	must(c.Failover(0))
	if e = p.await(audit.Promotion, c.Addr(0)); !e.Graceful {
		t.Errorf("planned failover: %+v", e)
	}
	plan.Done()

	must(c.Kill(1))
	if e = p.await(audit.NodeDown, c.Addr(1)); count(e.Slots) != 5462 {
		t.Errorf("kill: %+v", e)
	}
	must(c.Restart(1))
	if e = p.await(audit.Restart, c.Addr(1)); count(e.Slots) != 5462 || !strings.HasPrefix(e.Detail, "run id ") {
		t.Errorf("restart: %+v", e)
	}

	must(c.Kill(5))
	p.await(audit.NodeDown, c.Addr(5))
	must(c.Restart(5))
	if e = p.await(audit.Restart, c.Addr(5)); len(e.Slots) > 0 {
		t.Errorf("restart of a replica: %+v", e)
	}

	must(c.MoveSlot(100, 2))
	e = p.await(audit.SlotsMoved, c.Addr(2))
	if e.Was != c.Addr(0) || !slices.Equal(e.Slots, []audit.SlotRange{{First: 100, Last: 100}}) || !e.Graceful {
		t.Errorf("moved slot: %+v", e)
	}

	events := p.Stop()
	if got, want := kinds(events), "promotion, promotion, node down, restart, node down, restart, slots moved"; got != want {
		t.Errorf("all: %s; want %s", got, want)
	}
	if events[0].Graceful || !events[1].Graceful {
		t.Errorf("graceful: %v, %v; only the second was planned", events[0].Graceful, events[1].Graceful)
	}
}

// A plan covers its node and its time, and nothing if it is dropped.
func TestPlans(t *testing.T) {
	c := clustertest.Start(t)
	p := station(t, c.Addrs())
	fail := func(node int) audit.Event {
		t.Helper()
		if err := c.Failover(node); err != nil {
			t.Fatal(err)
		}
		return p.await(audit.Promotion, c.Addr(node))
	}
	p.Plan(c.Addr(5)).Done()
	other := p.Plan(c.Addr(4))
	if fail(3).Graceful {
		t.Error("a promotion is planned by a plan for another node")
	}
	other.Drop()
	if fail(4).Graceful {
		t.Error("a promotion is planned by a plan that was dropped")
	}
	// The plan for node 5 was done before; the look that shows this may have begun before that, the next cannot.
	fail(0)
	if fail(5).Graceful {
		t.Error("a promotion is planned by a plan that was done before")
	}
}

// A node that hangs is down, and up again, and delays nothing else for good.
func TestNoticesAHang(t *testing.T) {
	c := clustertest.Start(t)
	p := station(t, c.Addrs())
	if err := c.Hang(1); err != nil {
		t.Fatal(err)
	}
	p.await(audit.NodeDown, c.Addr(1))
	if err := c.Failover(4); err != nil {
		t.Fatal(err)
	}
	p.await(audit.Promotion, c.Addr(4))
	if err := c.Resume(1); err != nil {
		t.Fatal(err)
	}
	if e := p.await(audit.NodeUp, c.Addr(1)); count(e.Slots) != 5462 {
		t.Errorf("it had not heard of the promotion: %+v", e)
	}
}

func TestStopTakesALastLook(t *testing.T) {
	c := clustertest.Start(t)
	client, err := cluster.Open(t.Context(), cluster.Config{Addrs: c.Addrs()})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	w, err := watch.Start(t.Context(), client, time.Hour, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Failover(3); err != nil {
		t.Fatal(err)
	}
	if got := w.Events(); len(got) > 0 {
		t.Errorf("before a look: %v", got)
	}
	if got := w.Stop(); len(got) != 1 || got[0].Kind != audit.Promotion || got[0].Node != c.Addr(3) {
		t.Errorf("after the last look: %v", got)
	}
}

func TestStartRefuses(t *testing.T) {
	c := clustertest.Start(t)
	single, err := cluster.Wrap(redis.NewClient(&redis.Options{Addr: c.Addr(0)}))
	if err != nil {
		t.Fatal(err)
	}
	defer single.Close()
	if _, err := watch.Start(t.Context(), single, time.Hour, nil); !errors.Is(err, watch.ErrBlind) {
		t.Errorf("a single server: %v", err)
	}
	client, err := cluster.Open(t.Context(), cluster.Config{Addrs: c.Addrs()})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for node := range c.Addrs() {
		if err := c.Kill(node); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := watch.Start(t.Context(), client, time.Hour, nil); !errors.Is(err, watch.ErrBlind) {
		t.Errorf("a dead cluster: %v", err)
	}
}

func TestNoticesOnServers(t *testing.T) {
	c := servertest.Start(t, servertest.WithNodeTimeout(time.Second))
	p := station(t, c.Addrs())
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	n := c.Nodes()

	t.Log("graceful failover")
	began := time.Now()
	plan := p.Plan(n[3].Addr)
	must(c.Failover(ctx, n[3]))
	plan.Done()
	e := p.await(audit.Promotion, n[3].Addr)
	covers(t, e, began, time.Now())
	if e.Was != n[0].Addr || count(e.Slots) < 5461 || !e.Graceful {
		t.Errorf("failover: %+v", e)
	}
	must(c.WaitWhole(ctx))

	t.Log("takeover")
	must(n[0].Client.Do(ctx, "cluster", "failover", "takeover").Err())
	if e = p.await(audit.Promotion, n[0].Addr); e.Was != n[3].Addr || e.Graceful {
		t.Errorf("takeover: %+v", e)
	}
	must(c.WaitWhole(ctx))

	t.Log("move")
	must(c.MoveSlot(ctx, 100, n[0], n[1]))
	e = p.await(audit.SlotsMoved, n[1].Addr)
	if e.Was != n[0].Addr || !slices.Equal(e.Slots, []audit.SlotRange{{First: 100, Last: 100}}) {
		t.Errorf("moved slot: %+v", e)
	}
	must(c.WaitWhole(ctx))

	t.Log("kill and promotion")
	must(c.Kill(n[2]))
	p.await(audit.NodeDown, n[2].Addr)
	if e = p.await(audit.Promotion, n[5].Addr); e.Was != n[2].Addr || count(e.Slots) < 5461 {
		t.Errorf("kill: %+v", e)
	}
	must(c.Restart(ctx, n[2]))
	if e = p.await(audit.Restart, n[2].Addr); len(e.Slots) > 0 {
		t.Errorf("restart as a replica: %+v", e)
	}
	must(c.WaitWhole(ctx))

	t.Log("restart before the promotion")
	owner, err := c.Owner(ctx, keys.Slot("empty"))
	must(err)
	must(owner.Client.Set(ctx, "empty", 1, 0).Err())
	for _, slot := range []int{101, 102} { // the second is seen by a look that began after the key was set
		must(c.MoveSlot(ctx, slot, n[0], n[1]))
		p.await(audit.SlotsMoved, n[1].Addr)
		must(c.WaitWhole(ctx))
	}
	must(c.Kill(owner))
	must(c.Restart(ctx, owner))
	if e = p.await(audit.Restart, owner.Addr); count(e.Slots) < 5461 || !strings.Contains(e.Detail, "came back empty") {
		t.Errorf("restart: %+v", e)
	}
	must(c.WaitWhole(ctx))

	t.Log("pause")
	must(c.Pause(owner))
	p.await(audit.NodeDown, owner.Addr)
	replica := n[slices.IndexFunc(n, func(o *servertest.Node) bool { return o == owner })%3+3]
	p.await(audit.Promotion, replica.Addr)
	must(c.Resume(owner))
	if e = p.await(audit.NodeUp, owner.Addr); count(e.Slots) < 5461 {
		t.Errorf("resumed primary: %+v", e)
	}
	must(c.WaitWhole(ctx))

	// Nothing was made up. Who is late because the machine is busy may seem to be down, so that is left out.
	want := map[audit.EventKind]int{audit.Promotion: 4, audit.Restart: 2, audit.SlotsMoved: 3}
	events := p.Stop()
	for kind, n := range want {
		got := slices.DeleteFunc(slices.Clone(events), func(e audit.Event) bool { return e.Kind != kind })
		if len(got) != n {
			t.Errorf("%d of kind %s, want %d: %v", len(got), kind, n, got)
		}
	}
}
