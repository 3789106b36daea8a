package limiter_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slotlimit/slotlimit/cluster"
	"github.com/slotlimit/slotlimit/limiter"
)

// What lua/exactly_once.lua takes for too late, in ms.
const (
	onceBound   = 300_000
	onceHorizon = 3_600_000
)

// A onceCall is a call as lua/exactly_once.lua is given it, however often it is sent.
type onceCall struct {
	window  int64
	cost    int64
	guess   int64 // of the node's time, in ms of Unix time
	process int64
	number  int64
}

// A onceBench runs the script as processes do that nobody keeps to any order.
type onceBench struct {
	client *cluster.Client
	text   string
	script *cluster.Script
	period int64 // ms
	grace  int64 // ms
	prefix string
}

func newOnceBench(t *testing.T, addrs []string, prefix string, period time.Duration) *onceBench {
	t.Helper()
	text, err := os.ReadFile("lua/exactly_once.lua")
	if err != nil {
		t.Fatal(err)
	}
	return &onceBench{
		client: open(t, addrs), text: string(text), script: cluster.NewScript(string(text)),
		period: period.Milliseconds(), grace: 1000, prefix: prefix,
	}
}

func (b *onceBench) key(window int64) string { return fmt.Sprintf("%s:{alice}:%d", b.prefix, window) }

func (b *onceBench) end(window int64) int64 { return (window + 1) * b.period }

// send sends the call once.
func (b *onceBench) send(t *testing.T, c onceCall) ([]int64, error) {
	t.Helper()
	return b.client.Run(t.Context(), cluster.Call{Script: b.script, Key: b.key(c.window), Args: b.args(c)})
}

// args are the script's ARGV.
func (b *onceBench) args(c onceCall) []int64 {
	return []int64{c.cost, b.end(c.window) + b.grace - c.guess, b.period, b.grace, c.process, c.number}
}

// want sends the call, and wants the reply.
func (b *onceBench) want(t *testing.T, what string, c onceCall, want ...int64) {
	t.Helper()
	got, err := b.send(t, c)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%s: %v, %v, want %v", what, got, err, want)
	}
}

// fields returns the counter.
func (b *onceBench) fields(t *testing.T, window int64) map[string]string {
	t.Helper()
	fields, err := b.client.HGetAll(t.Context(), b.key(window)).Result()
	if err != nil {
		t.Fatal(err)
	}
	return fields
}

// A onceModel is what the header of the script says, in Go.
type onceModel struct {
	period, grace int64
	counters      map[int64]*onceCounter // by window
}

type onceCounter struct {
	count int64
	marks map[int64]onceMark // by process
}

type onceMark struct{ number, count, left int64 }

func (m *onceModel) run(c onceCall, now int64) []int64 {
	end := (c.window + 1) * m.period
	if now > end+m.grace {
		delete(m.counters, c.window)
	}
	counter := m.counters[c.window]
	if counter != nil && c.cost != 0 {
		switch mark, ok := counter.marks[c.process]; {
		case ok && c.number < mark.number:
			return []int64{0, 0, 1}
		case ok && c.number == mark.number:
			return []int64{1, mark.count, mark.left}
		}
	}
	left, late := end-now, now-c.guess
	switch {
	case left > m.period || late < -onceBound:
		return []int64{0, now, 1}
	case left <= 0 || late > onceBound && c.cost != 0:
		if late <= onceHorizon-onceBound && (counter != nil || left > -m.grace) {
			return []int64{0, now, 0}
		}
		return []int64{0, now, 1}
	}
	if c.cost == 0 {
		if counter == nil {
			return []int64{1, 0, left}
		}
		return []int64{1, counter.count, left}
	}
	if counter == nil {
		counter = &onceCounter{marks: map[int64]onceMark{}}
		m.counters[c.window] = counter
	}
	if _, known := counter.marks[c.process]; !known {
		for process, mark := range counter.marks {
			if mark.left-left > onceHorizon {
				delete(counter.marks, process)
			}
		}
	}
	counter.count += c.cost
	if c.cost < 0 {
		counter.count = 0
	}
	counter.marks[c.process] = onceMark{c.number, counter.count, left}
	return []int64{1, counter.count, left}
}

func (m *onceModel) fields(window int64) map[string]string {
	fields := map[string]string{}
	if counter := m.counters[window]; counter != nil {
		fields[limiter.CountField] = fmt.Sprint(counter.count)
		for process, mark := range counter.marks {
			fields[fmt.Sprint(process)] = fmt.Sprintf("%d %d %d", mark.number, mark.count, mark.left)
		}
	}
	return fields
}

// A onceWorld is some processes that make calls, at a time, and what became of them.
type onceWorld struct {
	random    *rand.Rand
	processes []int64
	newest    map[int64]int64 // number, by process
	made      []onceCall
	counted   map[onceCall]int  // how often each moved the count
	cleared   map[onceCall]bool // the script said that no sending of it counts
}

func newOnceWorld(seed uint64) *onceWorld {
	w := &onceWorld{
		random: rand.New(rand.NewPCG(seed, 0)), newest: map[int64]int64{},
		counted: map[onceCall]int{}, cleared: map[onceCall]bool{},
	}
	for range 5 {
		w.processes = append(w.processes, 1+w.random.Int64N(limiter.MaxRate))
	}
	return w
}

// next is a call: a new one, or one that was made before, be it long ago.
func (w *onceWorld) next(period, now int64) onceCall {
	if len(w.made) > 0 && w.random.IntN(5) < 2 {
		if w.random.IntN(2) == 0 {
			return w.made[max(0, len(w.made)-1-w.random.IntN(6))]
		}
		return w.made[w.random.IntN(len(w.made))]
	}
	if w.random.IntN(20) == 0 { // one ends, another starts
		w.processes[w.random.IntN(len(w.processes))] = 1 + w.random.Int64N(limiter.MaxRate)
	}
	process := w.processes[w.random.IntN(len(w.processes))]
	guess := now
	switch w.random.IntN(8) {
	case 0:
		guess += w.random.Int64N(2*onceHorizon) - onceHorizon
	case 1:
		guess += w.random.Int64N(2*onceBound) - onceBound
	case 2:
		guess += w.random.Int64N(3000) - 1500
	}
	c := onceCall{window: guess / period, cost: 1 + w.random.Int64N(3), guess: guess, process: process}
	switch w.random.IntN(12) {
	case 0:
		c.cost = 0
		return c
	case 1:
		c.cost = -1
	}
	w.newest[process]++
	c.number = w.newest[process]
	w.made = append(w.made, c)
	return c
}

// note holds what the script did against what it may do, whatever the model says: no
// call moves the count twice, and none does of which it was said that none would.
func (w *onceWorld) note(t *testing.T, c onceCall, reply []int64, before, after map[string]string) {
	t.Helper()
	moved := fmt.Sprint(c.number) == strings.Fields(after[fmt.Sprint(c.process)] + " x")[0] &&
		fmt.Sprint(c.number) != strings.Fields(before[fmt.Sprint(c.process)] + " x")[0]
	if !moved && before[limiter.CountField] != after[limiter.CountField] && after[limiter.CountField] != "" {
		t.Fatalf("%+v moved the count from %s to %s, and left no mark", c, before[limiter.CountField], after[limiter.CountField])
	}
	if moved {
		w.counted[c]++
	}
	if slices.Equal(reply[:1], []int64{0}) && reply[2] == 0 {
		w.cleared[c] = true
	}
	if w.counted[c] > 1 {
		t.Fatalf("%+v was counted %d times", c, w.counted[c])
	}
	if w.counted[c] > 0 && w.cleared[c] {
		t.Fatalf("%+v was counted, and the script said that it was not and would not be", c)
	}
}
