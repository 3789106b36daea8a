package faults_test

import (
	"errors"
	"testing"
	"time"

	"github.com/slotlimit/slotlimit/loadtest/faults"
)

func TestParse(t *testing.T) {
	for _, test := range []struct {
		text string
		want faults.Fault
	}{
		{"kill@3s", faults.Fault{Name: "kill", At: 3 * time.Second}},
		{"failover@0s", faults.Fault{Name: "failover"}},
		{"pause@3s", faults.Fault{Name: "pause", For: 5 * time.Second, At: 3 * time.Second}},
		{"pause:2s@1m30s", faults.Fault{Name: "pause", For: 2 * time.Second, At: 90 * time.Second}},
		{"reshard@2s", faults.Fault{Name: "reshard", Slots: 100, At: 2 * time.Second}},
		{"reshard:500@2s", faults.Fault{Name: "reshard", Slots: 500, At: 2 * time.Second}},
	} {
		got, err := faults.Parse(test.text)
		if err != nil || got != test.want {
			t.Errorf("%s: %+v, %v; want %+v", test.text, got, err, test.want)
		}
		if again, err := faults.Parse(got.String()); err != nil || again != got {
			t.Errorf("%s: String gives %q, which is %+v, %v", test.text, got, again, err)
		}
	}
	for _, text := range []string{
		"", "kill", "kill@", "kill@-1s", "kill@3", "nosuch@3s", "kill:2s@3s", "kill:@3s", "pause:x@3s", "pause:0s@3s",
		"pause:-1s@3s", "pause:100@3s", "reshard:0@1s", "reshard:2s@1s", "reshard:20000@1s", "reshard:@1s",
	} {
		if f, err := faults.Parse(text); !errors.Is(err, faults.ErrFault) {
			t.Errorf("%q is read as %+v, %v", text, f, err)
		}
	}
}

// Every name can be parsed without an argument, and one with an argument that its text form shows.
func TestNames(t *testing.T) {
	if len(faults.Names()) != 11 {
		t.Errorf("there are the faults %v", faults.Names())
	}
	for _, name := range faults.Names() {
		f, err := faults.Parse(name + "@1s")
		if err != nil || f.String() != name+"@1s" {
			t.Errorf("%s: %v, %v", name, f, err)
		}
	}
}

func TestNeeds(t *testing.T) {
	early, late := faults.Fault{Name: "pause", For: 20 * time.Second, At: time.Second}, faults.Fault{Name: "kill", At: 5 * time.Second}
	if got := faults.Needs([]faults.Fault{early, late}); got != 31*time.Second {
		t.Errorf("a load with a pause of 20s from 1s needs %v, should be 10s more", got)
	}
	if got := faults.Needs(nil); got != 0 {
		t.Errorf("no fault needs %v", got)
	}
}
