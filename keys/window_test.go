package keys

import (
	"errors"
	"math"
	"testing"
	"time"
)

func TestWindowNumber(t *testing.T) {
	for _, c := range []struct {
		unixMilli int64
		period    time.Duration
		want      int64
	}{
		{1748390459_000, time.Minute, 29139840},
		{1748390459_999, time.Minute, 29139840},
		{1748390460_000, time.Minute, 29139841},
		{0, time.Minute, 0},
		{59_999, time.Minute, 0},
		{60_000, time.Minute, 1},
		{-1, time.Minute, -1},
		{-60_000, time.Minute, -1},
		{-60_001, time.Minute, -2},
		{249, 250 * time.Millisecond, 0},
		{250, 250 * time.Millisecond, 1},
		{7, time.Millisecond, 7},
		{-7, time.Millisecond, -7},
		{math.MaxInt64, time.Millisecond, math.MaxInt64},
		{math.MinInt64, time.Millisecond, math.MinInt64},
		{math.MinInt64, 3 * time.Millisecond, math.MinInt64/3 - 1},
	} {
		if got := WindowNumber(c.unixMilli, c.period); got != c.want {
			t.Errorf("WindowNumber(%d, %v) = %d, want %d", c.unixMilli, c.period, got, c.want)
		}
	}
}

func FuzzWindowNumber(f *testing.F) {
	f.Add(int64(1748390460_000), int64(60_000))
	f.Add(int64(-1), int64(250))
	f.Fuzz(func(t *testing.T, unixMilli, millis int64) {
		const far = 1 << 60 // so that the ends of a window do not overflow
		if millis < 1 || millis > 366*86400_000 || unixMilli < -far || unixMilli > far {
			return
		}
		w := WindowNumber(unixMilli, time.Duration(millis)*time.Millisecond)
		if start := w * millis; unixMilli < start || unixMilli >= start+millis {
			t.Errorf("%d ms is not in window %d of %d ms", unixMilli, w, millis)
		}
	})
}

func TestCheckPeriod(t *testing.T) {
	for _, good := range hardPeriods {
		if err := CheckPeriod(good); err != nil {
			t.Errorf("CheckPeriod(%v): %v", good, err)
		}
	}
	for _, bad := range []time.Duration{0, 1, -time.Second, math.MinInt64, math.MaxInt64, time.Millisecond - 1, time.Millisecond + 1, time.Hour + time.Microsecond} {
		if err := CheckPeriod(bad); !errors.Is(err, ErrPeriod) {
			t.Errorf("CheckPeriod(%v) = %v, want ErrPeriod", bad, err)
		}
	}
}

func TestIsPlain(t *testing.T) {
	for period, want := range map[time.Duration]bool{
		time.Millisecond:                    true,
		9999 * time.Millisecond:             true,
		10 * time.Second:                    true,
		10*time.Second + time.Millisecond:   false,
		12500 * time.Millisecond:            false,
		11 * time.Second:                    true,
		10*time.Minute - time.Second:        true,
		10*time.Minute - time.Millisecond:   false,
		10 * time.Minute:                    true,
		10*time.Minute + time.Millisecond:   false,
		10*time.Minute + 30*time.Second:     false,
		11 * time.Minute:                    true,
		time.Hour:                           true,
		time.Hour + time.Second:             false,
		24 * time.Hour:                      true,
		24*time.Hour + 4*time.Second:        false,
		48 * time.Hour:                      true,
		48*time.Hour + time.Millisecond:     false,
		48*time.Hour + time.Minute:          false,
		7 * 24 * time.Hour:                  false,
		9223372036854 * time.Millisecond:    false,
		48*time.Hour - time.Minute:          true,
		48*time.Hour - 500*time.Millisecond: false,
	} {
		if got := isPlain(period); got != want {
			t.Errorf("isPlain(%v) = %v", period, got)
		}
	}
}

// nextPlain returns the shortest plain period that is longer, or 0.
func nextPlain(period time.Duration) time.Duration {
	step := time.Minute
	switch {
	case period < 10*time.Second:
		step = time.Millisecond
	case period < 10*time.Minute:
		step = time.Second
	case period == 48*time.Hour:
		return 0
	}
	return period + step
}

// TestPlainPeriodsAreParted walks through all neighbours p < q among the plain
// periods. A shorter p only shortens the life of its key, and a later time only
// lengthens the gap, so this is every pair at every time from the given one on.
func TestPlainPeriodsAreParted(t *testing.T) {
	const year1985, year2024 = 500_000_000_000, 1_704_067_200_000
	grace := MaxGrace.Milliseconds()
	pairs, least := 0, int64(math.MaxInt64)
	for p, q := time.Millisecond, nextPlain(time.Millisecond); q != 0; p, q = q, nextPlain(q) {
		for _, between := range []time.Duration{p + time.Millisecond, p + time.Second, (p + q) / 2, q - time.Second, q - time.Millisecond} {
			if p < between && between < q && between%time.Millisecond == 0 && isPlain(between) {
				t.Fatalf("%v is plain, but %v and %v are taken for neighbours", between, p, q)
			}
		}
		if !isPlain(q) {
			t.Fatalf("%v is not plain: the walk has lost its way", q)
		}
		gap := func(now int64) int64 {
			w := WindowNumber(now, q)
			return w*q.Milliseconds() - ((w+1)*p.Milliseconds() + grace)
		}
		if gap(year1985) < 0 {
			t.Fatalf("in 1985 the keys of %v and %v are alive at one time, for %d ms", p, q, -gap(year1985))
		}
		least = min(least, gap(year2024))
		pairs++
	}
	if want := 9999 + 590 + 2870; pairs != want {
		t.Errorf("%d pairs of neighbours, want %d", pairs, want)
	}
	if hours := time.Duration(least) * time.Millisecond / time.Hour; hours != 47 {
		t.Errorf("the least gap in 2024 is %d hours, the package comment says 47", hours)
	}
}

// checkParted fails if two limits of one user could use a key at one time: the same
// key for windows of two periods whose lives, grace included, are not parted by
// more than clocks may be wrong.
func checkParted(t *testing.T, p, q time.Duration, nowP, nowQ int64) {
	t.Helper()
	wp, wq := WindowNumber(nowP, p), WindowNumber(nowQ, q)
	keyP := string(AppendWindow([]byte("rl:{a}:"), "", p, wp))
	keyQ := string(AppendWindow([]byte("rl:{a}:"), "", q, wq))
	if p == q || keyP != keyQ {
		return
	}
	startP, endP := wp*p.Milliseconds(), (wp+1)*p.Milliseconds()+MaxGrace.Milliseconds()
	startQ, endQ := wq*q.Milliseconds(), (wq+1)*q.Milliseconds()+MaxGrace.Milliseconds()
	const clocks = 24 * 3600_000 // ms; 47 hours hold from 2024 on, 43 from 2020
	if startP < endQ+clocks && startQ < endP+clocks {
		t.Errorf("periods %v and %v share the key %s: alive [%d, %d) and [%d, %d), less than a day apart", p, q, keyP, startP, endP, startQ, endQ)
	}
}

// TestPeriodsAreParted tries times at which the two window numbers are equal, which is
// where a key could be shared, for close and for far periods of all kinds.
func TestPeriodsAreParted(t *testing.T) {
	r := newRand()
	const year2020 = 1_577_836_800_000
	for range 50_000 {
		p := randomPeriod(r)
		q := p + time.Duration(r.Int64N(20_000)-10_000)*time.Millisecond
		if r.IntN(2) == 0 {
			q = randomPeriod(r)
		}
		if CheckPeriod(q) != nil || max(p, q) > 366*24*time.Hour {
			continue
		}
		nowP := year2020 + r.Int64N(80*365*86400_000)
		w := WindowNumber(nowP, p)
		checkParted(t, p, q, nowP, max(year2020, w*q.Milliseconds()))
		checkParted(t, p, q, nowP, nowP)
	}
}

func FuzzPeriodsAreParted(f *testing.F) {
	f.Add(int64(599_999), int64(600_000), int64(1_600_000_000_000))
	f.Add(int64(86400_000), int64(86404_000), int64(1_748_390_460_000))
	f.Add(int64(172_740_000), int64(172_800_000), int64(1_748_390_460_000))
	f.Fuzz(func(t *testing.T, millisP, millisQ, now int64) {
		const year2020, year3000, longest = 1_577_836_800_000, 32_503_680_000_000, 366 * 86400_000
		if min(millisP, millisQ) < 1 || max(millisP, millisQ) > longest || now < year2020 || now > year3000 {
			return
		}
		p, q := time.Duration(millisP)*time.Millisecond, time.Duration(millisQ)*time.Millisecond
		if same := WindowNumber(now, p) * millisQ; same >= year2020 {
			checkParted(t, p, q, now, same)
		}
		checkParted(t, p, q, now, now)
	})
}
