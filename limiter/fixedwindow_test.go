package limiter

import (
	"encoding/binary"
	"testing"
	"time"
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
	for _, reply := range [][]int64{{1, 3, 250}, {0, 1748390440000, 0}, {1, 0, 0}, {1, -5, 1}, {2, 1, 1}, {0, 0, 0}, {1, 1}, {1, 1 << 53, 1}, {}} {
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
		r, ok := decodeWindow(reply, end)
		switch {
		case !ok:
			return
		case r.stale:
			if r.now <= 0 {
				t.Errorf("%v: stale at %d", reply, r.now)
			}
			return
		}
		res := r.decide(Limit{Rate: rate, Period: time.Minute}, n)
		if res.Remaining < 0 || res.Remaining > rate || res.RetryAfter < 0 || res.ResetAfter <= 0 || res.Allowed != (res.RetryAfter == 0) {
			t.Errorf("%v: %+v", reply, res)
		}
	})
}
