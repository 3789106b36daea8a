package limiter

import (
	"encoding"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

var (
	_ encoding.TextMarshaler   = Limit{}
	_ encoding.TextUnmarshaler = (*Limit)(nil)
)

const day = 24 * time.Hour

// ParseLimit reads a limit from text, [NAME=]RATE/PERIOD:
//
//	100/1m    100/m    login=5/1h    10/250ms    1000/7d
//
// RATE is a decimal integer. PERIOD is a duration of package time, in which the
// number may be left out where it is 1, or a whole number of days, "d". Errors are
// those of [Limit.Validate], and ErrLimitText for what is not of this form.
func ParseLimit(text string) (Limit, error) {
	var l Limit
	rest := text
	if name, after, named := strings.Cut(text, "="); named {
		if name == "" {
			return Limit{}, fmt.Errorf("%w: %.100q: empty name before =", ErrLimitText, text)
		}
		l.Name, rest = name, after
	}
	rate, period, ok := strings.Cut(rest, "/")
	if !ok {
		return Limit{}, fmt.Errorf("%w: %.100q: no /", ErrLimitText, text)
	}
	var err error
	if l.Rate, err = parseRate(rate); err != nil {
		return Limit{}, err
	}
	if l.Period, err = parsePeriod(period); err != nil {
		return Limit{}, err
	}
	if err := l.Validate(); err != nil {
		return Limit{}, err
	}
	return l, nil
}

// parseRate takes digits, with a minus for the sake of a clear error. strconv
// alone would take a plus too.
func parseRate(text string) (int64, error) {
	digits := strings.TrimPrefix(text, "-")
	if digits == "" || strings.Trim(digits, "0123456789") != "" {
		return 0, fmt.Errorf("%w: rate %.100q is no integer", ErrLimitText, text)
	}
	rate, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%w: %.100s", ErrRate, text)
	}
	return rate, nil
}

func parsePeriod(text string) (time.Duration, error) {
	number := text
	if !strings.ContainsAny(text, "0123456789") {
		number = "1" + text // a unit alone
	}
	if days, ok := strings.CutSuffix(number, "d"); ok {
		n, err := strconv.ParseUint(days, 10, 64)
		switch {
		case errors.Is(err, strconv.ErrRange), n > uint64(MaxPeriod/day):
			return 0, fmt.Errorf("%w: %.100s is above 366 days", ErrPeriod, text)
		case err != nil:
			return 0, fmt.Errorf("%w: period %.100q is no whole number of days", ErrLimitText, text)
		}
		return time.Duration(n) * day, nil
	}
	period, err := time.ParseDuration(number)
	if err != nil {
		return 0, fmt.Errorf("%w: period %.100q is no duration", ErrLimitText, text)
	}
	return period, nil
}

// String writes the limit as [ParseLimit] reads it.
func (l Limit) String() string {
	text := strconv.FormatInt(l.Rate, 10) + "/" + formatPeriod(l.Period)
	if l.Name != "" {
		text = l.Name + "=" + text
	}
	return text
}

// formatPeriod leaves out the zero units that time.Duration writes ("1m0s").
func formatPeriod(d time.Duration) string {
	if d >= day && d%day == 0 {
		return strconv.FormatInt(int64(d/day), 10) + "d"
	}
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// MarshalText writes the limit as [ParseLimit] reads it, or returns what
// [Limit.Validate] says of it.
func (l Limit) MarshalText() ([]byte, error) {
	if err := l.Validate(); err != nil {
		return nil, err
	}
	return []byte(l.String()), nil
}

// UnmarshalText reads the limit as [ParseLimit] does, and leaves it alone on error.
func (l *Limit) UnmarshalText(text []byte) error {
	parsed, err := ParseLimit(string(text))
	if err == nil {
		*l = parsed
	}
	return err
}
