package loadgen

import (
	"encoding/hex"
	"fmt"
	"math/bits"
)

// MaxUsers is the most users that a schedule can have: their names have 32 bits.
const MaxUsers = 1 << 32

// A Schedule says which user each request is for. Every user is as likely as any other.
//
// It is a value and holds nothing else, so any number of goroutines may use it.
type Schedule struct {
	Seed  uint64
	Users int64 // 1 to MaxUsers
}

// Validate returns an error if there are too few or too many users.
func (s Schedule) Validate() error {
	if s.Users < 1 || s.Users > MaxUsers {
		return fmt.Errorf("%d users: want 1 to %d", s.Users, int64(MaxUsers))
	}
	return nil
}

// User returns the user of a request, by the request's number.
func (s Schedule) User(request int64) string {
	return s.Name(s.index(request))
}

// index returns which user a request is for, 0 to Users-1: the high half of a
// 64-bit random number times the number of users, which favours no user by more
// than one part in 2^32.
func (s Schedule) index(request int64) int64 {
	high, _ := bits.Mul64(mix(mix(s.Seed)+uint64(request)), uint64(s.Users))
	return int64(high)
}

// Name returns the name of the user with an index from 0 to Users-1, for example
// "u-5f3c09d1". Different users have different names.
//
// The names are random, since an audit asks how probable it is that users are spread over the
// slots as they are, and that is a question only about random names. CRC16 is linear: of
// names in sequence, "user-1", "user-2" and so on, the slots are anything but independent.
func (s Schedule) Name(index int64) string {
	n := scramble(uint32(index) ^ uint32(mix(s.Seed^0x75736572)))
	name := [10]byte{0: 'u', 1: '-'}
	hex.Encode(name[2:], []byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)})
	return string(name[:])
}

// mix is a bijection of 64-bit numbers in which each bit of the result depends on all
// bits of the argument: the output function of the generator SplitMix64 (Steele,
// Lea and Flood, 2014).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// scramble is such a bijection of 32-bit numbers. A shift to the right that is XORed
// can be undone, and so can a multiplication with an odd number: no two results are equal.
func scramble(x uint32) uint32 {
	x = (x ^ x>>16) * 0x85ebca6b
	x = (x ^ x>>13) * 0xc2b2ae35
	return x ^ x>>16
}
