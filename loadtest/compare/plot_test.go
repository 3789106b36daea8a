package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
)

func TestPlot(t *testing.T) {
	r := result{
		contenders: contenders,
		rows:       []row{{workload{"hot", 1}, 1}, {workload{"hot", 1}, 64}, {workload{"zipf", 70}, 1}},
		Rows: []summary{
			{Workload: "hot", Users: 1, Goroutines: 1, Limiter: ours, Rate: 1e4, RateMin: 9e3, RateMax: 2e4},
			{Workload: "hot", Users: 1, Goroutines: 64, Limiter: ours, Rate: 4e5, RateMin: 3e5, RateMax: 5e5},
			{Workload: "hot", Users: 1, Goroutines: 64, Limiter: yardstick, Rate: 2e4, RateMin: 2e4, RateMax: 2e4},
			{Workload: "zipf", Users: 70, Goroutines: 1, Limiter: "throttled"}, // all attempts failed
		},
	}
	var svg bytes.Buffer
	if err := drawPlot(&svg, r); err != nil {
		t.Fatal(err)
	}
	text := svg.String()
	for _, want := range []string{">one hot user<", ">70 users, zipf 1.1<", ">slotlimit<", ">redis_rate<", ">200 k<", ">goroutines<", "sans-serif", "fill:#FFFFFF"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q", want)
		}
	}
	for _, no := range []string{">throttled<", ">ulule<", "NaN", "Inf"} {
		if strings.Contains(text, no) {
			t.Errorf("there is %q", no)
		}
	}
	if _, first, _ := strings.Cut(text, "<path"); !strings.Contains(first[:strings.Index(first, ">")], "fill:#FFFFFF") {
		t.Error("the page is not white")
	}
	d := xml.NewDecoder(&svg)
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

func TestPlotOfNothing(t *testing.T) {
	var svg bytes.Buffer
	never := summary{Workload: "hot", Users: 1, Goroutines: 1, Limiter: ours, RateMax: 5} // in one round, nothing
	for _, r := range []result{{}, {rows: []row{{workload{"hot", 1}, 1}}, Rows: []summary{never}}} {
		r.contenders = contenders
		if err := drawPlot(&svg, r); err != nil || svg.Len() > 0 {
			t.Errorf("%v: %s", err, svg.String())
		}
	}
}

func TestDecades(t *testing.T) {
	var labels []string
	for _, tick := range decades(800, 2.1e6) {
		labels = append(labels, tick.Label)
	}
	if got := strings.Join(labels, ","); got != "1 k,2 k,5 k,10 k,20 k,50 k,100 k,200 k,500 k,1 M,2 M" {
		t.Error(got)
	}
}
