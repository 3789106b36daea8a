package keys

import "strings"

// Slots is the number of hash slots of a Redis Cluster; slots are 0 to Slots-1.
const Slots = 16384

// Slot returns the hash slot of a Redis key, 0 to [Slots]-1: the CRC16 of its
// [Tag] modulo [Slots], equal to what CLUSTER KEYSLOT answers. It takes any key,
// not only those of this package, the empty one and invalid UTF-8 included, and
// allocates nothing.
//
// The start that [Layout.User] returns has the slot of all keys of that user.
func Slot(key string) int {
	return int(crc16(Tag(key)) % Slots)
}

// Tag returns the part of a Redis key that is hashed: what stands between the
// first "{" and the first "}" after it, if that is at least one byte, else the
// whole key. So the tag of "{}{a}" is all of it: the first pair is empty, and a
// second pair is never looked at. The rule is that of the Redis Cluster
// specification, section "Hash tags".
func Tag(key string) string {
	open := strings.IndexByte(key, '{')
	if open < 0 {
		return key
	}
	length := strings.IndexByte(key[open+1:], '}')
	if length <= 0 {
		return key
	}
	return key[open+1 : open+1+length]
}

// crcPolynomial is x^16 + x^12 + x^5 + 1 without its highest term.
const crcPolynomial = 0x1021

// crcTable holds, for each byte, the remainder of that byte followed by 16 zero bits.
var crcTable = func() (table [256]uint16) {
	for i := range table {
		remainder := uint16(i) << 8
		for range 8 {
			carry := remainder&0x8000 != 0
			remainder <<= 1
			if carry {
				remainder ^= crcPolynomial
			}
		}
		table[i] = remainder
	}
	return table
}()

// crc16 is the CRC16 that the Redis Cluster specification names, known as
// XMODEM: polynomial 0x1021, start value 0, highest bit first, nothing reflected,
// no final XOR. The check value, that of "123456789", is 0x31C3.
func crc16(s string) uint16 {
	var crc uint16
	for i := range len(s) {
		crc = crc<<8 ^ crcTable[byte(crc>>8)^s[i]]
	}
	return crc
}
