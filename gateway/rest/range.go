package rest

import (
	"strconv"
	"strings"
)

// span is a part of a file, in bytes.
type span struct{ first, length int64 }

func whole(size int64) span { return span{0, size} }

type rangeResult int

const (
	rangeIgnored rangeResult = iota // malformed, or several ranges: the whole file is a correct answer
	rangeGood
	rangeOutside
)

// parseRange parses one range of bytes: "bytes=0-99", "bytes=100-", "bytes=-100".
func parseRange(text string, size int64) (span, rangeResult) {
	unit, spec, found := strings.Cut(text, "=")
	low, high, isRange := strings.Cut(strings.TrimSpace(spec), "-")
	if !found || !isRange || strings.TrimSpace(unit) != "bytes" || strings.Contains(spec, ",") {
		return span{}, rangeIgnored
	}
	if low == "" {
		last, ok := position(high)
		switch {
		case !ok:
			return span{}, rangeIgnored
		case last == 0 || size == 0:
			return span{}, rangeOutside
		}
		last = min(last, size)
		return span{size - last, last}, rangeGood
	}
	first, ok := position(low)
	if !ok {
		return span{}, rangeIgnored
	}
	last := size - 1
	if high != "" {
		end, ok := position(high)
		if !ok || end < first {
			return span{}, rangeIgnored
		}
		last = min(last, end)
	}
	if first >= size {
		return span{}, rangeOutside
	}
	return span{first, last - first + 1}, rangeGood
}

// position parses digits; a number that is too large becomes the largest.
func position(text string) (int64, bool) {
	if text == "" || strings.Trim(text, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 1<<63 - 1, true
	}
	return n, true
}

// Matches reports whether an If-None-Match names the ETag, weak or not.
func Matches(list, etag string) bool {
	etag = strings.TrimPrefix(etag, "W/")
	for _, candidate := range strings.Split(list, ",") {
		candidate = strings.TrimSpace(candidate)
		if candidate == "*" || strings.TrimPrefix(candidate, "W/") == etag {
			return true
		}
	}
	return false
}
