package keys

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// MaxGrace is the longest time that a key may outlive the end of its window. The
// names of the keys rely on it: see "Parting of periods" in the package comment.
// Whoever sets the expiry of a key keeps to it.
const MaxGrace = 10 * time.Minute

// Bounds of the plain periods, whose window number stands alone in the key: whole
// milliseconds, seconds and minutes. The proof in the package comment needs them.
const (
	millisUpTo  = 10 * time.Second
	secondsUpTo = 10 * time.Minute
	minutesUpTo = 48 * time.Hour
)

// WindowNumber returns the number of the window that a time is in: unixMilli, the
// Unix time in milliseconds, divided by the period in milliseconds, rounded down.
// Window w lasts from w·period, included, to (w+1)·period, not included. Times
// before 1970 are in negative windows: -1 ms is in window -1, since rounding toward
// zero would make window 0 twice as long as the others.
//
// The period must be good for [CheckPeriod]; below one millisecond there are no
// windows, and WindowNumber panics with a division by zero.
func WindowNumber(unixMilli int64, period time.Duration) int64 {
	millis := period.Milliseconds()
	window := unixMilli / millis
	if unixMilli%millis < 0 {
		window-- // Go rounds a quotient toward zero
	}
	return window
}

// AppendWindow completes the key of a window and returns the longer slice, as append
// does. dst ends with the user's part, which [Layout.User] returns and
// [Layout.AppendUser] appends. It is for the hot path, where the user, the name and
// the period have been checked once: it checks nothing, and allocates only if dst is
// too small. A name that [CheckLimitName] refuses or a period that [CheckPeriod]
// refuses gives a key that another limit may have too. [Layout.Window] is the same
// with checks.
func AppendWindow(dst []byte, limit string, period time.Duration, window int64) []byte {
	if limit != "" {
		dst = append(dst, limit...)
		dst = append(dst, ':')
	}
	dst = strconv.AppendInt(dst, window, 10)
	if !isPlain(period) {
		dst = append(dst, '@')
		dst = strconv.AppendInt(dst, period.Milliseconds(), 10)
	}
	return dst
}

// CheckPeriod tells whether keys can be made for a period, with an error that is
// [ErrPeriod] if not: it must be a whole number of milliseconds, at least one.
// Windows are counted in milliseconds, so 1.5 ms could not be told from 1 ms.
func CheckPeriod(period time.Duration) error {
	if period < time.Millisecond {
		return fmt.Errorf("%w: %v is below 1ms", ErrPeriod, period)
	}
	if period%time.Millisecond != 0 {
		return fmt.Errorf("%w: %v is no whole number of milliseconds", ErrPeriod, period)
	}
	return nil
}

// isPlain tells whether the window numbers of a period stand alone in the key.
func isPlain(period time.Duration) bool {
	return period <= millisUpTo ||
		period <= secondsUpTo && period%time.Second == 0 ||
		period <= minutesUpTo && period%time.Minute == 0
}

// parseWindow reads what AppendWindow writes after the name; the period is 0 where
// the number stands alone.
func parseWindow(s string) (window int64, period time.Duration, ok bool) {
	number, after, told := strings.Cut(s, "@")
	window, ok = parseInt(number)
	if !ok || !told {
		return window, 0, ok
	}
	millis, ok := parseInt(after)
	if !ok || millis > math.MaxInt64/int64(time.Millisecond) {
		return 0, 0, false
	}
	// A plain period is never told. All below 1 ms count as plain here, so this
	// refuses 0 and what is negative too.
	period = time.Duration(max(millis, 0)) * time.Millisecond
	return window, period, !isPlain(period)
}

// parseInt reads a number in the one form that strconv.AppendInt writes: no plus, no
// leading zeros, no minus before a zero.
func parseInt(s string) (int64, bool) {
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil && strconv.FormatInt(n, 10) == s
}
