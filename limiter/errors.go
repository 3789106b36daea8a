package limiter

import (
	"errors"

	"github.com/slotlimit/slotlimit/cluster"
	"github.com/slotlimit/slotlimit/keys"
)

// What New, Limit.Validate and ParseLimit may return, always wrapped with the
// value at fault.
var (
	// ErrRate means that a limit's rate is below 0 or above MaxRate.
	ErrRate = errors.New("limiter: rate out of range")

	// ErrPeriod means that a limit's period is below MinPeriod, above MaxPeriod, or
	// no whole number of milliseconds.
	ErrPeriod = errors.New("limiter: period out of range")

	// ErrLimitName means that a limit's name is too long, or holds a byte that the
	// key of a counter cannot.
	ErrLimitName = keys.ErrLimitName

	// ErrLimitText means that a text is not of ParseLimit's form.
	ErrLimitText = errors.New("limiter: limit is not written as [NAME=]RATE/PERIOD")

	// ErrOption means that an option given to New is out of range.
	ErrOption = errors.New("limiter: invalid option")
)

// What a decision may return before anything is sent, always wrapped with the
// value at fault.
var (
	// ErrEmptyUser means that the user is the empty string. It is more often a
	// caller whose key function found nothing than a user.
	ErrEmptyUser = keys.ErrEmptyUser

	// ErrNegativeCost means that n is below 0.
	ErrNegativeCost = errors.New("limiter: negative cost")

	// ErrCostAboveRate means that n is above the limit's rate, so that the attempt
	// could never be allowed, and would deny what others in the window ask for.
	ErrCostAboveRate = errors.New("limiter: cost above the limit's rate")
)

// What a decision may return when the node gave none. Each comes in a
// [*cluster.CallError], which names the Redis key and wraps the cause.
var (
	// ErrUnavailable means that no decision was made and nothing was counted.
	ErrUnavailable = cluster.ErrUnavailable

	// ErrAmbiguous means that the reply was lost: the attempt was counted once or
	// not at all, and its decision is not known.
	ErrAmbiguous = cluster.ErrAmbiguous
)

// What Flush may return.
var (
	// ErrUnsettled means that attempts which were denied locally are not all in their
	// counters, and how many are not.
	ErrUnsettled = errors.New("limiter: local denials not added to their counters")
)
