package main

import (
	"fmt"
	"go/constant"
	"go/token"
	"go/types"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// Names in rows that replace a constant with their number.
var notCompared = map[string]string{
	"kIssuedKept":              "microseconds",
	"kKeptFreePages":           "pages of 4 KiB",
	"kMaxUnackedMetadataBytes": "another constant and 1",
	"keep_age":                 "the default is none",
	"RetainedAudit":            "a function",
	"AuditArguments":           "arguments of a command",
	"LogLimiter":               "arguments of a constructor",
	"DiskReserve":              "a share of the disk",
	"FilesBlobStore":           "a share of the disk",
	"Reserve":                  "a share of another limit",
	"MaxLogSize":               "a sum of others",
	"received_at_":             "a multiple of the interval",
	"CheckAttempt":             "the present time",
}

// TestValuesAreThoseOfTheCode compares each row with the number of its constant or default, so a limit that is changed in the
// code alone is found, also where its test has a separate limit.
func TestValuesAreThoseOfTheCode(t *testing.T) {
	for _, s := range sheets(t) {
		for _, l := range s.Limits {
			file, names, ok := strings.Cut(l.At, ":")
			if !ok || notCompared[names] != "" {
				continue
			}
			text, err := os.ReadFile(filepath.Join(root, file))
			if err != nil {
				t.Error(err)
				continue
			}
			for name := range strings.SplitSeq(names, ",") {
				values := valuesOf(codeOf(string(text)), name)
				if len(values) == 0 {
					t.Errorf("%s: %s: %s has no number in %s", s.Title, l.Bounds, name, file)
				}
				for _, value := range values {
					if !value.isIn(l.Value) {
						t.Errorf("%s: %s: %q is %s in %s of %s", s.Title, l.Bounds, l.Value, value, name, file)
					}
				}
			}
		}
	}
}

// value is a number of the code, or a time in seconds.
type value struct {
	number float64
	isTime bool
}

func (v value) String() string {
	if v.isTime {
		return time.Duration(v.number * float64(time.Second)).String()
	}
	return fmt.Sprint(int64(v.number))
}

var field = regexp.MustCompile(`\.\w+ = ([^,{}]+)`)

// valuesOf returns the numbers of a constant or a default: one, or those of the fields of a structure.
func valuesOf(source, name string) []value {
	for _, match := range regexp.MustCompile(`\b`+regexp.QuoteMeta(name)+`\s*=\s*([^;]+);`).FindAllStringSubmatch(source, -1) {
		if v, ok := evaluate(match[1]); ok {
			v.isTime = v.isTime || strings.HasSuffix(name, "Ms")
			switch {
			case strings.HasSuffix(name, "Ms"):
				v.number /= 1000
			case strings.HasPrefix(name, "nano_"):
				v.number /= 1e9
			}
			return []value{v}
		}
		var values []value
		if strings.HasPrefix(match[1], "{") {
			for _, f := range field.FindAllStringSubmatch(match[1], -1) {
				if v, ok := evaluate(f[1]); ok && v.number > 1 {
					values = append(values, v)
				}
			}
		}
		if len(values) > 0 {
			return values
		}
	}
	return nil
}

var (
	duration = regexp.MustCompile(`^absl::(\w+)\((.*)\)$`)
	cast     = regexp.MustCompile(`\w+\{([^{}]*)\}`)
	unsigned = regexp.MustCompile(`(\d)u\b`)
	units    = map[string]float64{"Milliseconds": 1e-3, "Seconds": 1, "Minutes": 60, "Hours": 3600}
)

// evaluate returns the value of an expression of C++ that has only numbers.
func evaluate(expression string) (value, bool) {
	expression = strings.TrimSpace(expression)
	if match := duration.FindStringSubmatch(expression); match != nil && units[match[1]] > 0 {
		v, ok := evaluate(match[2])
		return value{v.number * units[match[1]], true}, ok
	}
	expression = unsigned.ReplaceAllString(cast.ReplaceAllString(strings.ReplaceAll(expression, "'", "_"), "($1)"), "$1")
	evaluated, err := types.Eval(token.NewFileSet(), nil, token.NoPos, expression)
	if err != nil || evaluated.Value == nil {
		return value{}, false
	}
	number, _ := constant.Float64Val(constant.ToFloat(evaluated.Value))
	return value{number: number}, true
}

// isIn reports whether the text of a row has the value, in any unit.
func (v value) isIn(text string) bool {
	for unit, size := range map[string]float64{"": 1, " KiB": 1 << 10, " MiB": 1 << 20, " GiB": 1 << 30} {
		if !v.isTime && has(text, v.number/size, unit) {
			return true
		}
	}
	for unit, size := range map[string]float64{" ms": 1e-3, " s": 1, " min": 60, " h": 3600, " days": 24 * 3600} {
		if v.isTime && has(text, v.number/size, unit) {
			return true
		}
	}
	return v.isTime && v.number == 7*24*3600 && strings.Contains(text, "a week")
}

func has(text string, number float64, unit string) bool {
	if number != math.Trunc(number) {
		return false
	}
	plain := fmt.Sprintf("%.0f", number)
	for from := len(plain) - 3; from > 0; from -= 3 {
		plain = plain[:from] + "," + plain[from:]
	}
	text = strings.ReplaceAll(text, "10^12", "1,000,000,000,000")
	return regexp.MustCompile(`(^|[^\d,.])` + plain + unit + `($|[^\d,\w]|,\D|, )`).MatchString(text)
}
