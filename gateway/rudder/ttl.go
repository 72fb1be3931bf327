package rudder

import (
	"errors"
	"math"
	"math/bits"
	"strconv"
	"strings"
	"time"
)

// units of a time to live, in nanoseconds. A month is 30.44 days, a year 365.25.
var units = func() map[string]uint64 {
	const day = uint64(24 * time.Hour)
	all := map[string]uint64{}
	for names, size := range map[string]uint64{
		"ns nsec nanos": 1, "us usec": uint64(time.Microsecond), "ms msec millis": uint64(time.Millisecond),
		"s sec secs second seconds": uint64(time.Second), "m min mins minute minutes": uint64(time.Minute),
		"h hr hrs hour hours": uint64(time.Hour), "d day days": day, "w week weeks": 7 * day,
		"M month months": 3044 * day / 100, "y year years": 36525 * day / 100,
	} {
		for name := range strings.FieldsSeq(names) {
			all[name] = size
		}
	}
	return all
}()

var errTTL = errors.New("the ttl is neither a number of seconds nor a time such as 1h 30m, or it is too long")

// parseTTL parses whole seconds, or numbers with a unit each.
func parseTTL(text string) (seconds uint64, err error) {
	if seconds, err := strconv.ParseUint(text, 10, 64); err == nil {
		return seconds, nil
	}
	var nanos uint64 // seconds remain less than 1<<63
	rest := strings.TrimSpace(text)
	if rest == "" {
		return 0, errTTL
	}
	for rest != "" {
		digits := strings.TrimLeft(rest, "0123456789")
		count, err := strconv.ParseUint(rest[:len(rest)-len(digits)], 10, 64)
		if err != nil {
			return 0, errTTL
		}
		named := strings.TrimLeft(digits, " ")
		rest = strings.TrimLeft(named, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
		unit, known := units[named[:len(named)-len(rest)]]
		high, part := bits.Mul64(count, unit)
		second, left := bits.Div64(min(high, uint64(time.Second)-1), part, uint64(time.Second))
		if !known || high >= uint64(time.Second) || second > math.MaxInt64-seconds-1 {
			return 0, errTTL
		}
		nanos += left
		seconds, nanos = seconds+second+nanos/uint64(time.Second), nanos%uint64(time.Second)
		rest = strings.TrimLeft(rest, " ")
	}
	return seconds, nil
}

// expiry returns the Unix time at which something with this time to live expires.
func expiry(now time.Time, ttl string) (int64, error) {
	seconds, err := parseTTL(ttl)
	if err != nil || seconds > uint64(math.MaxInt64-now.Unix()) {
		return 0, errTTL
	}
	return now.Unix() + int64(seconds), nil
}
