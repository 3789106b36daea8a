package clustertest

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// absolute rewrites a command that sets an expiry into the one that sets it at an
// instant, because the store knows instants only. It returns an error reply instead
// where the time is none.
func absolute(args []string, now time.Time) ([]string, string) {
	switch strings.ToUpper(args[0]) {
	case "EXPIRE", "PEXPIRE", "EXPIREAT", "PEXPIREAT":
		return absoluteExpire(args, now)
	case "SETEX", "PSETEX":
		option := "EX"
		if len(args[0]) == len("PSETEX") {
			option = "PX"
		}
		at, refusal := instant(args[0], option, args[2], now)
		return []string{"SET", args[1], args[3], "PXAT", at}, refusal
	case "SET":
		return absoluteOption(args, 3, now)
	case "GETEX":
		return absoluteOption(args, 2, now)
	case "RESTORE", "RESTORE-ASKING":
		return absoluteRestore(args, now)
	case "XADD":
		return absoluteEntry(args, now), ""
	}
	return args, ""
}

func absoluteExpire(args []string, now time.Time) ([]string, string) {
	unit, from := int64(1000), now.UnixMilli()
	name := strings.ToUpper(args[0])
	if name[0] == 'P' {
		unit = 1
	}
	if strings.HasSuffix(name, "AT") {
		from = 0
	}
	n, err := strconv.ParseInt(args[2], 10, 64)
	if err != nil {
		return nil, errNotInteger
	}
	if n > math.MaxInt64/unit || n < math.MinInt64/unit || n*unit > 0 && n*unit > math.MaxInt64-from {
		return nil, errExpire(name)
	}
	at := min(n*unit+from, latest)
	return append([]string{"PEXPIREAT", args[1], strconv.FormatInt(at, 10)}, args[3:]...), ""
}

// latest is the last instant that the store can keep, in Unix milliseconds: it
// counts nanoseconds, which reach to the year 2262. Redis reaches further.
const latest = math.MaxInt64 / int64(time.Millisecond)

func errExpire(name string) string {
	return "ERR invalid expire time in '" + strings.ToLower(name) + "' command"
}

// instant turns the value of an EX, PX, EXAT or PXAT option into Unix milliseconds.
func instant(name, option, text string, now time.Time) (string, string) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return "", errNotInteger
	}
	unit, from := int64(1000), now.UnixMilli()
	if option[0] == 'P' {
		unit = 1
	}
	if strings.HasSuffix(option, "AT") {
		from = 0
	}
	if n <= 0 || n > (math.MaxInt64-from)/unit {
		return "", errExpire(name)
	}
	return strconv.FormatInt(min(n*unit+from, latest), 10), ""
}

// absoluteOption rewrites the first EX, PX or EXAT after args[from]. A second one is
// left for the store to refuse.
func absoluteOption(args []string, from int, now time.Time) ([]string, string) {
	for i := from; i < len(args)-1; i++ {
		switch option := strings.ToUpper(args[i]); option {
		case "EX", "PX", "EXAT", "PXAT":
			at, refusal := instant(args[0], option, args[i+1], now)
			out := append([]string(nil), args...)
			out[i], out[i+1] = "PXAT", at
			return out, refusal
		}
	}
	return args, ""
}

func absoluteRestore(args []string, now time.Time) ([]string, string) {
	ttl, err := strconv.ParseInt(args[2], 10, 64)
	if err != nil || ttl < 0 {
		return nil, "ERR Invalid TTL value, must be >= 0"
	}
	out := append([]string{"RESTORE"}, args[1:]...)
	for _, a := range args[4:] {
		if strings.EqualFold(a, "ABSTTL") {
			return out, ""
		}
	}
	if ttl > 0 {
		out[2] = strconv.FormatInt(min(ttl+now.UnixMilli(), latest), 10)
		out = append(out, "ABSTTL")
	}
	return out, ""
}

// absoluteEntry gives an entry of a stream its ID where XADD leaves that to the
// node, whose clock the store does not know.
func absoluteEntry(args []string, now time.Time) []string {
	for i := 2; i < len(args); i++ {
		if args[i] == "*" {
			out := append([]string(nil), args...)
			out[i] = strconv.FormatInt(now.UnixMilli(), 10) + "-" + strconv.FormatInt(int64(now.Nanosecond()%int(time.Millisecond)), 10)
			return out
		}
	}
	return args
}

// passed deletes a key that EXPIRE or one of its kind has just given an instant
// that is not in the future. Redis does this at once, not at the next use.
func (s *shard) passed(key string, now time.Time) {
	if at := s.expiry(key); at != 0 && at <= now.UnixMilli() {
		s.db.Del(key)
	}
}

// remaining answers TTL and PTTL: milliseconds until expiry, -1 for a key without
// one, -2 for no key.
func (s *shard) remaining(key string, now time.Time) int64 {
	if !s.db.Exists(key) {
		return -2
	}
	at := s.expiry(key)
	if at == 0 {
		return -1
	}
	return max(0, at-now.UnixMilli())
}
