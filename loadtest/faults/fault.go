package faults

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Fault is one thing to break, and when. Its text form is NAME[:ARG]@TIME, such
// as "kill@3s", "pause:2s@3s" or "reshard:500@2s".
type Fault struct {
	Name  string
	Slots int           // how many to move; of reshard
	For   time.Duration // how long it is kept up; of those that have a duration
	At    time.Duration // from the start of the load
}

// ErrFault is wrapped by every error about a fault's text.
var ErrFault = errors.New("no such fault")

// A kind is what a name stands for.
type kind struct {
	run     func(*attempt) error
	length  time.Duration // how long it is kept up by default; 0: it has no duration
	slots   int           // how many slots it moves by default; 0: it takes no number
	machine bool          // it needs the machines of the nodes
	network bool          // and that these can be cut off from their peers
	again   bool          // and that these can be started again
}

// kinds are the faults by name.
var kinds = map[string]kind{}

func init() {
	// Filled here because the functions use the map themselves.
	kinds = map[string]kind{
		"failover":    {run: (*attempt).failover},
		"takeover":    {run: (*attempt).takeover},
		"kill":        {run: (*attempt).kill, machine: true, again: true},
		"restart":     {run: (*attempt).restart, machine: true, again: true},
		"pause":       {run: (*attempt).pause, machine: true, length: 5 * time.Second},
		"partition":   {run: (*attempt).partition, machine: true, network: true, length: 5 * time.Second},
		"reshard":     {run: (*attempt).reshard, slots: 100},
		"migrate":     {run: (*attempt).migrate, length: 2 * time.Second},
		"flush":       {run: (*attempt).flush, length: 2 * time.Second},
		"clientpause": {run: (*attempt).clientPause, length: 2 * time.Second},
		"disconnect":  {run: (*attempt).disconnect},
	}
}

// Names returns the names that a fault can have, in alphabetical order.
func Names() []string { return slices.Sorted(maps.Keys(kinds)) }

// Parse reads a fault's text form.
func Parse(text string) (Fault, error) {
	what, at, ok := strings.Cut(text, "@")
	if !ok {
		return Fault{}, fmt.Errorf("%w: %q: want NAME@TIME, such as kill@3s", ErrFault, text)
	}
	var f Fault
	arg := ""
	f.Name, arg, ok = strings.Cut(what, ":")
	k, known := kinds[f.Name]
	if !known {
		return Fault{}, fmt.Errorf("%w: %q: want one of %s", ErrFault, f.Name, strings.Join(Names(), ", "))
	}
	f.For, f.Slots = k.length, k.slots
	var err error
	if f.At, err = time.ParseDuration(at); err != nil || f.At < 0 {
		return Fault{}, fmt.Errorf("%w: %q: its time is %q: want one such as 3s", ErrFault, text, at)
	}
	switch {
	case !ok:
	case k.slots > 0:
		if f.Slots, err = strconv.Atoi(arg); err != nil || f.Slots < 1 || f.Slots > 16384 {
			return Fault{}, fmt.Errorf("%w: %q: want a number of slots, as in %s:%d@3s", ErrFault, text, f.Name, k.slots)
		}
	case k.length > 0:
		if f.For, err = time.ParseDuration(arg); err != nil || f.For < time.Millisecond || f.For > time.Hour {
			return Fault{}, fmt.Errorf("%w: %q: want a duration from 1ms to 1h, as in %s:%v@3s", ErrFault, text, f.Name, k.length)
		}
	default:
		return Fault{}, fmt.Errorf("%w: %q: %s takes nothing after a colon", ErrFault, text, f.Name)
	}
	return f, nil
}

// String is the text form, without what it has by default.
func (f Fault) String() string {
	k := kinds[f.Name]
	switch {
	case f.Slots != k.slots:
		return fmt.Sprintf("%s:%d@%v", f.Name, f.Slots, f.At)
	case f.For != k.length:
		return fmt.Sprintf("%s:%v@%v", f.Name, f.For, f.At)
	}
	return fmt.Sprintf("%s@%v", f.Name, f.At)
}

// MarshalText and UnmarshalText are String and Parse.
func (f Fault) MarshalText() ([]byte, error) { return []byte(f.String()), nil }

// UnmarshalText reads what String gives.
func (f *Fault) UnmarshalText(text []byte) (err error) {
	*f, err = Parse(string(text))
	return err
}

// recovery is how long a cluster may need to serve all slots again after a fault, with
// the usual node time-outs, and some more to see that it does.
const recovery = 10 * time.Second

// Needs returns how long a load has to be for these faults to be made, and for the cluster to
// recover from them.
func Needs(all []Fault) time.Duration {
	longest := time.Duration(0)
	for _, f := range all {
		longest = max(longest, f.At+f.For+recovery)
	}
	return longest
}
