package config

import (
	"errors"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"

	"go.yaml.in/yaml/v3"
)

// scalar writes a text as YAML: plain if that reads back as the same text.
func scalar(value string) string {
	if value == "" || strings.ContainsFunc(value, unicode.IsControl) {
		return strconv.Quote(value)
	}
	text, _ := yaml.Marshal(value)
	return strings.TrimSuffix(string(text), "\n")
}

func list(values []string) string {
	quoted := make([]string, len(values))
	for i, value := range values {
		quoted[i] = strconv.Quote(value)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// isHTTPS reports whether an address has a host and no path.
func isHTTPS(text string) bool {
	parsed, err := url.Parse(text)
	return err == nil && parsed.Scheme == "https" && parsed.Host != "" && strings.Trim(parsed.Path, "/") == "" &&
		parsed.RawQuery == "" && parsed.Fragment == "" && parsed.User == nil
}

func isAddress(text string) bool {
	host, port, err := net.SplitHostPort(text)
	_, portErr := strconv.ParseUint(port, 10, 16)
	return err == nil && portErr == nil && host != ""
}

// formatDuration leaves out zero units: "1m", not "1m0s".
func formatDuration(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

var byteUnits = []struct {
	name  string
	shift int
}{{"TiB", 40}, {"GiB", 30}, {"MiB", 20}, {"KiB", 10}}

func parseByteSize(text string) (int64, bool) {
	shift := 0
	for _, unit := range byteUnits {
		if number, found := strings.CutSuffix(text, unit.name); found {
			text, shift = number, unit.shift
			break
		}
	}
	number, err := strconv.ParseUint(text, 10, 63)
	if err != nil || number > (1<<63-1)>>shift {
		return 0, false
	}
	return int64(number) << shift, true
}

func formatByteSize(bytes int64) string {
	for _, unit := range byteUnits {
		if bytes != 0 && bytes%(1<<unit.shift) == 0 {
			return strconv.FormatInt(bytes>>unit.shift, 10) + unit.name
		}
	}
	return strconv.FormatInt(bytes, 10)
}

// parsePorts parses "7450-7949", and "0", which gives 0, 0.
func parsePorts(text string) (first, last int, err error) {
	low, high, isRange := strings.Cut(text, "-")
	if !isRange {
		high = low
	}
	a, errLow := strconv.ParseUint(low, 10, 16)
	b, errHigh := strconv.ParseUint(high, 10, 16)
	if errLow != nil || errHigh != nil || a > b || (a == 0 && b != 0) {
		return 0, 0, errors.New("want a port, a range such as 7450-7949, or 0")
	}
	return int(a), int(b), nil
}
