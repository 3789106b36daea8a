package faults

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/slotlimit/slotlimit/keys"
)

// A Class is how a call ended.
type Class int

// The classes.
const (
	Acknowledged Class = iota // the caller got a decision
	Ambiguous                 // the reply was lost: counted or not
	Unavailable               // surely not counted
)

// An Outcome is a call that has ended.
type Outcome struct {
	Slot       int // hash slot of the user
	Start, End time.Time
	Class      Class
}

// A Shard is the hash slots that one primary had when the load started. It keeps its
// name and its slots whatever happens then: its users stay the same ones.
type Shard struct {
	Name  string // address of the primary at the start
	Slots []SlotRange
}

// A SlotRange is the hash slots from First to Last, both included.
type SlotRange struct {
	First int `json:"first"`
	Last  int `json:"last"`
}

// A Record takes down outcomes: for each shard the longest time without a decision, and
// for each fault when the slots that it hit were served again, and what failed until then.
// What it holds does not grow with the number of calls.
//
// [NewRecord] makes one. It is safe for concurrent use.
type Record struct {
	of     [keys.Slots]int16 // index of the shard, -1 if none
	shards []*shardRecord

	outages atomic.Pointer[[]*Outage] // to be copied when one is added
	adding  sync.Mutex
}

type shardRecord struct {
	mu sync.Mutex
	ShardSummary
	last time.Time // latest decision, or the start
}

// A ShardSummary is what the calls for one shard's users came to.
type ShardSummary struct {
	Shard                                Shard
	Acknowledged, Ambiguous, Unavailable int64

	// Gap is the longest time from one decision to the next, or from the last one to
	// the end; GapFrom is when it began.
	Gap     time.Duration
	GapFrom time.Time
}

// NewRecord returns a record of a load that starts now.
func NewRecord(now time.Time, shards []Shard) *Record {
	r := &Record{}
	for slot := range r.of {
		r.of[slot] = -1
	}
	for i, s := range shards {
		r.shards = append(r.shards, &shardRecord{ShardSummary: ShardSummary{Shard: s, GapFrom: now}, last: now})
		for _, slots := range s.Slots {
			for slot := slots.First; slot <= slots.Last; slot++ {
				r.of[slot] = int16(i)
			}
		}
	}
	r.outages.Store(&[]*Outage{})
	return r
}

// Add takes down a call that has ended.
func (r *Record) Add(o Outcome) {
	i := r.of[o.Slot]
	if i < 0 {
		return
	}
	s := r.shards[i]
	s.mu.Lock()
	s.add(o)
	s.mu.Unlock()
	for _, outage := range *r.outages.Load() {
		outage.add(o, int(i))
	}
}

func (s *shardRecord) add(o Outcome) {
	switch o.Class {
	case Ambiguous:
		s.Ambiguous++
		return
	case Unavailable:
		s.Unavailable++
		return
	}
	s.Acknowledged++
	s.gap(o.End)
}

// gap ends the present gap at a decision. Callers come in any order, and
// one that comes late ends no gap that an earlier one has ended.
func (s *shardRecord) gap(end time.Time) {
	if d := end.Sub(s.last); d > s.Gap {
		s.Gap, s.GapFrom = d, s.last
	}
	if end.After(s.last) {
		s.last = end
	}
}

// Close returns the summaries of a load that ended at a time, one a shard. A gap that has not
// ended then has lasted until then.
func (r *Record) Close(end time.Time) []ShardSummary {
	var all []ShardSummary
	for _, s := range r.shards {
		s.mu.Lock()
		s.gap(end)
		all = append(all, s.ShardSummary)
		s.mu.Unlock()
	}
	return all
}

// An Outage is what callers notice of one fault.
type Outage struct {
	hit [keys.Slots]bool

	mu        sync.Mutex
	began     time.Time
	since     time.Time // from when the recovery counts
	effective time.Time // zero: not yet
	recovered time.Time // zero: not yet
	over      time.Time // the fault itself is done with; zero: not yet
	waiting   atomic.Bool
	failed    []Failures // by shard
}

// Failures counts the calls of one shard that got no decision.
type Failures struct{ Ambiguous, Unavailable int64 }

// Begin starts to watch the slots that a fault hits. began is before it is made.
func (r *Record) Begin(began time.Time, slots []SlotRange) *Outage {
	o := &Outage{began: began, since: began, failed: make([]Failures, len(r.shards))}
	for _, s := range slots {
		for slot := s.First; slot <= s.Last; slot++ {
			o.hit[slot] = true
		}
	}
	r.adding.Lock()
	defer r.adding.Unlock()
	all := append(slices.Clone(*r.outages.Load()), o)
	r.outages.Store(&all)
	return o
}

// Effective says that from now on the fault is made. A call that was sent earlier and succeeds
// tells nothing of recovery.
func (o *Outage) Effective(at time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.effective = at
	o.waiting.Store(true)
}

// Done is [Outage.Effective] for a fault that takes its time and is felt, if at all, when it is
// done: its recovery counts from there, not from the beginning.
func (o *Outage) Done(at time.Time) {
	o.mu.Lock()
	o.since = at
	o.mu.Unlock()
	o.Effective(at)
}

// Over says that the fault has been undone, or is done with.
func (o *Outage) Over(at time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.over = at
}

func (o *Outage) add(call Outcome, shard int) {
	if call.Class == Acknowledged && !o.waiting.Load() {
		return // nearly all calls: no lock for them
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if call.Class == Acknowledged {
		if o.waiting.Load() && o.hit[call.Slot] && !call.Start.Before(o.effective) {
			o.recovered = call.End
			o.waiting.Store(false)
		}
		return
	}
	if call.End.Before(o.began) || o.past(call.Start) {
		return
	}
	if call.Class == Ambiguous {
		o.failed[shard].Ambiguous++
	} else {
		o.failed[shard].Unavailable++
	}
}

// past says whether a call that started then had nothing to do with the fault.
func (o *Outage) past(start time.Time) bool {
	return !o.recovered.IsZero() && start.After(o.recovered) && !o.over.IsZero() && start.After(o.over)
}

// Recovery returns how long after the fault's beginning, or [Outage.Done], a call on the slots that it hit
// succeeded, of those that were sent after it took effect. It reports false if none has yet.
func (o *Outage) Recovery() (time.Duration, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.recovered.IsZero() {
		return 0, false
	}
	return o.recovered.Sub(o.since), true
}

// Failed returns the calls that failed from the fault's beginning to its end and the recovery,
// by shard, on whichever slots.
func (o *Outage) Failed() []Failures {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.failed)
}
