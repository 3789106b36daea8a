package limiter

import (
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/slotlimit/slotlimit/cluster/clustertest"
	"github.com/slotlimit/slotlimit/keys"
)

// Whatever a node replies, decoding it does not panic, and what it takes for a
// decision is one that makes sense.
func FuzzDecodeWindow(f *testing.F) {
	encode := func(reply ...int64) (b []byte) {
		for _, n := range reply {
			b = binary.BigEndian.AppendUint64(b, uint64(n))
		}
		return b
	}
	for _, reply := range [][]int64{{1, 3, 250}, {0, 1748390440000, 0}, {1, 0, 0}, {1, -5, 1}, {2, 1, 1}, {0, 0, 0}, {1, 1}, {1, 1 << 53, 1}, {3<<10 | 500}, {-1<<10 | 1}, {1023}, {0}, {}} {
		f.Add(encode(reply...), int64(1748390460000), int64(100), int64(1))
	}
	f.Fuzz(func(t *testing.T, b []byte, end, rate, n int64) {
		if rate < 0 || rate > MaxRate || n < 0 || n > MaxRate {
			return
		}
		var reply []int64
		for ; len(b) >= 8; b = b[8:] {
			reply = append(reply, int64(binary.BigEndian.Uint64(b)))
		}
		window := fixedWindow{limit: Limit{Rate: rate, Period: time.Minute}, grace: time.Second}
		r, ok := window.read(attempts, counter{end: end, guess: end - 20_000}, reply)
		switch {
		case !ok:
			return
		case r.stale:
			if r.now <= 0 {
				t.Errorf("%v: stale at %d", reply, r.now)
			}
			return
		}
		res := window.deal(r, alone(n))
		if res.Remaining < 0 || res.Remaining > rate || res.RetryAfter < 0 || res.ResetAfter <= 0 || res.Allowed != (res.RetryAfter == 0) {
			t.Errorf("%v: %+v", reply, res)
		}
	})
}

// The counts of a shared call are those that single calls would have had.
func TestDealtOut(t *testing.T) {
	f := &fixedWindow{limit: PerMinute(10)}
	for _, c := range []struct {
		count int64 // after all
		costs []int64
		want  []int64
	}{
		{1, []int64{1}, []int64{1}},
		{12, []int64{1, 0, 9, 0, 2}, []int64{1, 1, 10, 10, 12}},
		{7, []int64{0, 0}, []int64{7, 7}},
		{-3, []int64{1, 1}, []int64{-4, -3}}, // an operator's doing
		{MaxRate, []int64{MaxRate - 1, 1}, []int64{MaxRate - 1, MaxRate}},
		{MaxRate + 1, []int64{1, 1}, []int64{MaxRate + 1, MaxRate + 1}}, // it may be more
	} {
		s := share{}
		for _, n := range c.costs {
			s.total += n
		}
		for i, n := range c.costs {
			s.cost = n
			got := f.deal(answer{count: c.count, left: 5}, s)
			want := f.deal(answer{count: c.want[i], left: 5}, alone(n))
			if got != want || got.Count != c.want[i] {
				t.Errorf("count %d after %v: attempt %d was told %+v, alone %+v", c.count, c.costs, i, got, want)
			}
			s.before += n
		}
	}
}

// The TTLs that the script takes without asking for the time are those of the window, and
// the one that the guess says is in their middle or as near as can be.
func TestLow(t *testing.T) {
	f := &fixedWindow{limit: PerMinute(10), grace: 2 * time.Second}
	const end = 1748390460_000
	for guess, want := range map[int64]int64{
		end - 60_000: 62_000 - spread, end - 59_500: 62_000 - spread, end - 59_499: 61_499 - spread/2,
		end - 30_000: 32_000 - spread/2, end - 500: 2000, end - 1: 2000,
	} {
		at := counter{end: end, guess: guess}
		if got := f.low(at); got != want {
			t.Errorf("%d ms before the end: low is %d, want %d", end-guess, got, want)
		}
		for reply, ok := range map[int64]bool{7 << 10: false, 7<<10 | 1: true, 7<<10 | spread: true, 7<<10 | spread + 1: false} {
			a, got := f.read(attempts, at, []int64{reply})
			if want := (answer{count: 7, left: want - 2000 + reply&1023, now: end - (want - 2000 + reply&1023)}); got != ok || ok && a != want {
				t.Errorf("%d ms before the end: %d is read as %+v, %v, want %+v, %v", end-guess, reply, a, got, want, ok)
			}
		}
	}
	short := &fixedWindow{limit: Per(10, spread*time.Millisecond-time.Millisecond), grace: time.Second}
	if low := short.low(counter{end: end, guess: end - 500}); low != MaxRate {
		t.Errorf("low of a short window is %d, want one above every TTL", low)
	}
}

// What no version of call sends is refused, and nothing is counted.
func TestFixedWindowBadArguments(t *testing.T) {
	c := clustertest.Start(t)
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: c.Addrs()})
	defer client.Close()
	period, grace := time.Hour.Milliseconds(), int64(1000)
	window := keys.WindowNumber(time.Now().UnixMilli(), time.Hour)
	key := fmt.Sprintf("rl:{alice}:%d", window)
	low := func() int64 { return (window+1)*period + grace - time.Now().UnixMilli() - spread/2 }
	good := fmt.Sprintf("%d %d", period, grace)
	run := func(at []string, args ...any) error {
		return client.Eval(t.Context(), fixedWindowText, at, args...).Err()
	}
	if err := run([]string{key}, good, low()); err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{
		"cost below 0":    run([]string{key}, good, low(), -1),
		"broken cost":     run([]string{key}, good, low(), "1.5"),
		"cost no number":  run([]string{key}, good, low(), "one"),
		"cost above 2^53": run([]string{key}, good, low(), int64(1)<<53),
		"low 0":           run([]string{key}, good, 0),
		"low no number":   run([]string{key}, good, "nan"),
		"no low":          run([]string{key}, good),
		"no period":       run([]string{key}, "", int64(MaxRate)),
		"no grace":        run([]string{key}, "3600000", int64(MaxRate)),
		"period 0":        run([]string{key}, "0 1000", int64(MaxRate)),
		"grace 0":         run([]string{key}, "3600000 0", int64(MaxRate)),
		"two keys":        run([]string{key, key}, good, low()),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	// A TTL of which a low below 1 says that it is right.
	if err := client.PExpire(t.Context(), key, 500*time.Millisecond).Err(); err != nil {
		t.Fatal(err)
	}
	if err := run([]string{key}, good, 0); err == nil {
		t.Error("low 0 and a TTL within its reach: no error")
	}
	if count := client.Get(t.Context(), key).Val(); count != "1" {
		t.Errorf("%q is counted, want 1", count)
	}
}
