package limiter_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/slotlimit/slotlimit/cluster"
	"github.com/slotlimit/slotlimit/cluster/clustertest"
	"github.com/slotlimit/slotlimit/cluster/servertest"
	"github.com/slotlimit/slotlimit/limiter"
)

// Whatever is sent in whatever order, new calls and old ones again, by processes that come
// and go and are wrong about the time, while hours pass: the script agrees with the
// model, counts no call twice, and is right when it says that a call is not counted.
func TestExactlyOnceScript(t *testing.T) {
	c := start(t, clustertest.WithClock(stopped))
	counted, cleared := 0, 0
	for seed := range uint64(12) {
		w := newOnceWorld(seed)
		period := []time.Duration{time.Second, 7 * time.Minute, 3 * time.Hour, 24 * time.Hour}[seed%4]
		b := newOnceBench(t, c.Addrs(), fmt.Sprint("script-", seed), period)
		m := onceModel{period: b.period, grace: b.grace, counters: map[int64]*onceCounter{}}
		step := []int64{b.period / 8, 2000, onceBound / 2, onceHorizon / 2}
		for i := range 700 {
			if w.random.IntN(3) == 0 {
				c.Advance(time.Duration(1+w.random.Int64N(step[w.random.IntN(len(step))])) * time.Millisecond)
			}
			now := c.Now(0).UnixMilli()
			call := w.next(b.period, now)
			before := b.fields(t, call.window)
			want := m.run(call, now)
			got, err := b.send(t, call)
			if err != nil || !slices.Equal(got, want) {
				t.Fatalf("seed %d, call %d, %v after its guess: %+v: %v, %v, want %v", seed, i, now-call.guess, call, got, err, want)
			}
			after := b.fields(t, call.window)
			if want := m.fields(call.window); !maps.Equal(after, want) {
				t.Fatalf("seed %d, call %d: %+v left %v, want %v", seed, i, call, after, want)
			}
			w.note(t, call, got, before, after)
		}
		counted, cleared = counted+len(w.counted), cleared+len(w.cleared)
	}
	if counted < 3000 || cleared < 100 {
		t.Errorf("%d counted, %d surely not: the test tests nothing", counted, cleared)
	}
}

// The same on a real server, whose time only passes by itself.
func TestExactlyOnceScriptOnServers(t *testing.T) {
	c := servertest.Shared(t)
	b := newOnceBench(t, c.Addrs(), "once-script", 24*time.Hour)
	m := onceModel{period: b.period, grace: b.grace, counters: map[int64]*onceCounter{}}
	w := newOnceWorld(1)
	for i := range 2000 {
		call := w.next(b.period, time.Now().UnixMilli())
		before := b.fields(t, call.window)
		got, err := b.send(t, call)
		if err != nil {
			t.Fatal(err)
		}
		// What the node's clock said is in most of the replies; the model is asked as of then.
		now := time.Now().UnixMilli()
		switch {
		case got[0] == 0 && got[1] > 0:
			now = got[1]
		case got[0] == 1:
			now = b.end(call.window) - got[2]
		}
		if want := m.run(call, now); !slices.Equal(got, want) {
			t.Fatalf("call %d: %+v: %v, want %v", i, call, got, want)
		}
		after := b.fields(t, call.window)
		if want := m.fields(call.window); !maps.Equal(after, want) {
			t.Fatalf("call %d: %+v left %v, want %v", i, call, after, want)
		}
		w.note(t, call, got, before, after)
	}
	if len(w.counted) < 500 || len(w.cleared) == 0 {
		t.Errorf("%d counted, %d surely not: the test tests nothing", len(w.counted), len(w.cleared))
	}
	if n := c.CheckKeys(t, b.prefix+":"); n == 0 {
		t.Error("no keys")
	}
}

// Fields of processes that are gone are removed when another comes, and only those; a
// call that arrives again after that is refused.
func TestExactlyOnceForgets(t *testing.T) {
	c := start(t, clustertest.WithClock(stopped))
	b := newOnceBench(t, c.Addrs(), "forgets", 24*time.Hour)
	now := func() int64 { return c.Now(0).UnixMilli() }
	window := now() / b.period
	call := func(process, number int64) onceCall {
		return onceCall{window: window, cost: 1, guess: now(), process: process, number: number}
	}
	left := func() int64 { return b.end(window) - now() }
	gone := call(1, 1)
	b.want(t, "first", gone, 1, 1, left())
	told := left()
	c.Advance(onceHorizon / 2 * time.Millisecond)
	b.want(t, "a process that stays", call(2, 1), 1, 2, left())
	c.Advance(onceHorizon / 2 * time.Millisecond)
	b.want(t, "at the horizon", call(3, 1), 1, 3, left())
	b.want(t, "again, at the horizon", gone, 1, 1, told)
	c.Advance(time.Millisecond)
	b.want(t, "a known process removes nothing", call(2, 2), 1, 4, left())
	b.want(t, "again, after that", gone, 1, 1, told)
	b.want(t, "a new process", call(4, 1), 1, 5, left())
	if fields := b.fields(t, window); fields["1"] != "" || len(fields) != 4 || fields[limiter.CountField] != "5" {
		t.Errorf("left: %v, want the count and the processes 2, 3 and 4", fields)
	}
	b.want(t, "again, its field being gone", gone, 0, now(), 1)
	if fields := b.fields(t, window); fields[limiter.CountField] != "5" {
		t.Errorf("count %s, want 5", fields[limiter.CountField])
	}
}

// A thousand processes that are gone are removed in several turns, on a real server.
func TestExactlyOnceForgetsMany(t *testing.T) {
	c := servertest.Shared(t)
	b := newOnceBench(t, c.Addrs(), "once-forgets", 366*24*time.Hour)
	now := time.Now().UnixMilli()
	window := now / b.period
	key, left := b.key(window), b.end(window)-now
	fields := []any{limiter.CountField, 1000}
	for i := range 1000 {
		fields = append(fields, 1000+i, fmt.Sprint("1 1 ", left+onceHorizon+60_000))
	}
	if err := b.client.HSet(t.Context(), key, fields...).Err(); err != nil {
		t.Fatal(err)
	}
	b.client.PExpireAt(t.Context(), key, time.UnixMilli(b.end(window)+b.grace))
	for i := range int64(11) {
		reply, err := b.send(t, onceCall{window: window, cost: 1, guess: now, process: 1 + i, number: 1})
		if err != nil || reply[0] != 1 || reply[1] != 1001+i {
			t.Fatalf("%v, %v", reply, err)
		}
	}
	if n := b.client.HLen(t.Context(), key).Val(); n != 12 {
		t.Errorf("%d fields, want the count and 11 processes", n)
	}
	c.CheckKeys(t, b.prefix+":")
}

// Arguments that are none, and counters that are none, change nothing.
func TestExactlyOnceRefuses(t *testing.T) {
	c := start(t, clustertest.WithClock(stopped))
	b := newOnceBench(t, c.Addrs(), "refuses", time.Hour)
	now := midday.UnixMilli()
	good := []int64{1, b.end(now/b.period) + b.grace - now, b.period, b.grace, 7, 1}
	run := func(args []int64) error {
		_, err := b.client.Run(t.Context(), cluster.Call{Script: b.script, Key: b.key(now / b.period), Args: args})
		return err
	}
	for i, bad := range []map[int]int64{{0: -2}, {0: 1 << 53}, {2: 0}, {3: 0}, {4: 0}, {5: 0}, {5: 1 << 53}} {
		args := slices.Clone(good)
		for at, value := range bad {
			args[at] = value
		}
		if err := run(args); err == nil {
			t.Errorf("%d: %v was taken", i, args)
		}
	}
	if err := run(good[:5]); err == nil {
		t.Error("five arguments were taken")
	}
	if n := b.client.Exists(t.Context(), b.key(now/b.period)).Val(); n != 0 {
		t.Error("a bad argument wrote")
	}
	for _, value := range []string{"one", "1.5", "nan", "inf", ""} {
		key := b.key(now / b.period)
		b.client.HSet(t.Context(), key, limiter.CountField, value)
		b.client.Expire(t.Context(), key, time.Hour)
		if err := run(good); err == nil || b.client.HGet(t.Context(), key, limiter.CountField).Val() != value {
			t.Errorf("%q: %v", value, err)
		}
	}
}
