package keys

import "errors"

// Errors of setting up: [New], [CheckLimitName], [CheckPeriod]. Each is wrapped
// with the value at fault; compare with [errors.Is].
var (
	// ErrPrefix: the prefix is longer than [MaxPrefixBytes] or holds a brace or a
	// control byte. A brace would become the hash tag in the user's place.
	ErrPrefix = errors.New("keys: bad prefix")

	// ErrLimitName: the name of a limit is longer than [MaxLimitNameBytes] or holds
	// a byte that names may not hold; see [CheckLimitName].
	ErrLimitName = errors.New("keys: bad limit name")

	// ErrPeriod: the period is below one millisecond or no whole number of them.
	ErrPeriod = errors.New("keys: bad period")
)

// Errors of naming a key: [Layout.User], [Layout.Window] (and those above).
var (
	// ErrEmptyUser: the user is empty. It is most often a missing header or a
	// failed lookup, and counting all such callers as one user is no decision to
	// make silently. An empty hash tag would also part the user's keys over slots.
	ErrEmptyUser = errors.New("keys: empty user")
)

// Errors of reading a key back: [Layout.Parse].
var (
	// ErrForeign: the key was not made by this layout. It belongs to another
	// program, to another prefix, or was written by hand in a form that is never
	// made here.
	ErrForeign = errors.New("keys: foreign key")
)
