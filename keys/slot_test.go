package keys

import (
	"strings"
	"testing"
)

// bitwiseSlot is the slot of a key worked out anew: the tag by a scan for the first
// pair of braces, and the CRC as a division of polynomials, a bit at a time over
// the key and 16 zero bits, with no table.
func bitwiseSlot(key string) int {
	hashed := key
	for i := range len(key) {
		if key[i] != '{' {
			continue
		}
		for j := i + 1; j < len(key); j++ {
			if key[j] == '}' {
				if j > i+1 {
					hashed = key[i+1 : j]
				}
				break
			}
		}
		break
	}
	remainder := 0
	for i := range len(hashed) + 2 {
		next := byte(0)
		if i < len(hashed) {
			next = hashed[i]
		}
		for bit := 7; bit >= 0; bit-- {
			remainder = remainder<<1 | int(next>>bit)&1
			if remainder >= 0x10000 {
				remainder ^= 0x11021
			}
		}
	}
	return remainder % 16384
}

func TestCRC16CheckValue(t *testing.T) {
	if got := crc16("123456789"); got != 0x31C3 {
		t.Errorf("crc16(123456789) = %#x, the check value of CRC16/XMODEM is 0x31C3", got)
	}
}

// TestSlotKnown holds answers of CLUSTER KEYSLOT, Redis 7.0.15.
func TestSlotKnown(t *testing.T) {
	for key, want := range map[string]int{
		"":                    0,
		"123456789":           12739,
		"rl:{alice}:29139841": 749,
		"rl:{%7D}:login:5":    14708,
		"{}{a}":               13650,
		"{{a}}":               10276,
		"{a}{b}":              15495,
		"x{open":              5412,
		"\xff\xfe":            3374,
		"foo{bar}":            5061,
	} {
		if got := Slot(key); got != want {
			t.Errorf("Slot(%q) = %d, a node says %d", key, got, want)
		}
	}
}

func TestTag(t *testing.T) {
	for key, want := range map[string]string{
		"":             "",
		"a":            "a",
		"{a}":          "a",
		"x{a}y":        "a",
		"{a}{b}":       "a",
		"{{a}}":        "{a",
		"{}":           "{}",
		"{}{a}":        "{}{a}",
		"{a":           "{a",
		"a}":           "a}",
		"}a{b}":        "b",
		"}{":           "}{",
		"{ }":          " ",
		"{\xff}":       "\xff",
		"rl:{a:b}:5":   "a:b",
		"rl:{%7D}:x:5": "%7D",
	} {
		if got := Tag(key); got != want {
			t.Errorf("Tag(%q) = %q, want %q", key, got, want)
		}
	}
}

func TestSlotEqualsBitwise(t *testing.T) {
	r := newRand()
	seen := make(map[int]bool)
	for range 20_000 {
		key := randomUser(r)
		got, want := Slot(key), bitwiseSlot(key)
		if got != want {
			t.Fatalf("Slot(%q) = %d, bit by bit it is %d", key, got, want)
		}
		seen[got] = true
	}
	if len(seen) < Slots/2 {
		t.Errorf("20000 random keys fell into %d slots: the keys are too much alike to test anything", len(seen))
	}
}

func TestSlotAllocatesNothing(t *testing.T) {
	for _, key := range []string{"rl:{alice}:29139841", "plain", strings.Repeat("x", 64<<10)} {
		sum := 0
		if allocs := testing.AllocsPerRun(100, func() { sum += Slot(key) }); allocs != 0 {
			t.Errorf("Slot(%s): %v allocations, want none", quote(key), allocs)
		}
	}
}

func FuzzSlot(f *testing.F) {
	for _, user := range hardUsers {
		f.Add(user)
	}
	f.Add("")
	f.Add("{}{a}")
	f.Add("{a}{b}")
	f.Fuzz(func(t *testing.T, key string) {
		got, want := Slot(key), bitwiseSlot(key)
		if got != want {
			t.Errorf("Slot(%q) = %d, bit by bit it is %d", key, got, want)
		}
	})
}
