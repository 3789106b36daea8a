package limiter

import (
	"fmt"
	"time"

	"github.com/slotlimit/slotlimit/keys"
)

// The ranges of a limit's fields.
const (
	// MaxRate is 2^53-1, the largest integer that Lua's numbers count up to.
	MaxRate = 1<<53 - 1

	// MinPeriod is what a node's clock can tell apart.
	MinPeriod = time.Millisecond

	// MaxPeriod is a leap year.
	MaxPeriod = 366 * 24 * time.Hour
)

// A Limit says how many attempts of one user are allowed in one period:
//
//	limiter.PerMinute(100)                                  // 100 in every minute
//	limiter.Limit{Name: "login", Rate: 5, Period: time.Hour} // 5 an hour, on a counter of its own
//
// It is a value: compare, copy and store it freely. [ParseLimit] and the text
// methods read and write it as "100/1m" or "login=5/1h", so that flags, JSON and
// YAML can hold it. The zero value has no period and is refused by [New].
type Limit struct {
	// Name keeps the counters of this limit apart from the user's others; limits
	// that differ in name or in period never share a counter. Empty is the only,
	// unnamed limit. At most 64 bytes, none of {}=/@, no space, no control byte.
	Name string

	// Rate is the number of attempts that are allowed in each period, from 0, which
	// denies all, to MaxRate.
	Rate int64

	// Period is the length of a window, a whole number of milliseconds from
	// MinPeriod to MaxPeriod. Windows begin at its multiples since 1970, UTC.
	Period time.Duration
}

// PerSecond returns the unnamed limit of rate attempts a second.
func PerSecond(rate int64) Limit { return Per(rate, time.Second) }

// PerMinute returns the unnamed limit of rate attempts a minute.
func PerMinute(rate int64) Limit { return Per(rate, time.Minute) }

// PerHour returns the unnamed limit of rate attempts an hour.
func PerHour(rate int64) Limit { return Per(rate, time.Hour) }

// PerDay returns the unnamed limit of rate attempts in 24 hours, from midnight UTC.
func PerDay(rate int64) Limit { return Per(rate, 24*time.Hour) }

// Per returns the unnamed limit of rate attempts in each period.
func Per(rate int64, period time.Duration) Limit { return Limit{Rate: rate, Period: period} }

// Validate returns ErrRate, ErrPeriod or ErrLimitName, wrapped with the value at
// fault, when a field is out of range.
func (l Limit) Validate() error {
	switch {
	case l.Rate < 0:
		return fmt.Errorf("%w: %d is negative", ErrRate, l.Rate)
	case l.Rate > MaxRate:
		return fmt.Errorf("%w: %d is above 2^53-1", ErrRate, l.Rate)
	case l.Period < MinPeriod:
		return fmt.Errorf("%w: %v is below %v", ErrPeriod, l.Period, MinPeriod)
	case l.Period > MaxPeriod:
		return fmt.Errorf("%w: %v is above 366 days", ErrPeriod, l.Period)
	case l.Period%time.Millisecond != 0:
		return fmt.Errorf("%w: %v is no whole number of milliseconds", ErrPeriod, l.Period)
	}
	return keys.CheckLimitName(l.Name)
}
