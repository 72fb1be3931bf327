// Package table reads the limits of all programs: services/common/limits/*.yaml, and those of the gateway.
package table

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"

	"muster.example/gateway/limits"
	"muster.example/services/common/generated"
)

const (
	folder = "services/common/limits"
	// The test of each limit of the gateway, by its name, and `wire` as in the other sheets.
	gatewayGuards = "gateway/limits/guards.yaml"
)

// Sheet is one section of the table.
type Sheet struct {
	Title  string
	Limits []Limit
}

// Limit is one row.
type Limit struct {
	Bounds string
	Value  string
	Per    string
	At     string // FILE:IDENTIFIER,... of the constants or defaults; empty for the gateway, whose checks read its table
	Key    string
	Metric string
	Reason string // of the refusal; empty: Then tells the consequence
	Then   string
	Do     string
	Guard  string // FILE:TEST that fails if the limit does not hold
	Wire   string // why that is no end-to-end test: a key of reasonsOfWire
}

// Read reads and checks all sheets, by the names of their files, and the table of the gateway.
func Read(root string) ([]*Sheet, error) {
	paths, err := filepath.Glob(filepath.Join(root, folder, "*.yaml"))
	if err != nil || len(paths) == 0 {
		return nil, fmt.Errorf("no table in %s: %w", folder, err)
	}
	guards := map[string]guard{}
	if err := generated.ReadYAML(filepath.Join(root, gatewayGuards), &guards); err != nil {
		return nil, err
	}
	sheets := []*Sheet{gatewaySheet(guards)}
	if rows := len(sheets[0].Limits); rows != len(guards) {
		return nil, fmt.Errorf("%s has %d rows for %d limits", gatewayGuards, len(guards), rows)
	}
	for _, path := range paths {
		s := &Sheet{}
		if err := generated.ReadYAML(path, s); err != nil {
			return nil, err
		}
		for _, l := range s.Limits {
			if l.Bounds == "" || l.Value == "" || l.Per == "" || !strings.Contains(l.At, ":") {
				return nil, fmt.Errorf("%s: %q needs bounds, value, per, and at as FILE:IDENTIFIER", path, l.Bounds)
			}
		}
		sheets = append(sheets, s)
	}
	for _, s := range sheets {
		for _, l := range s.Limits {
			if !strings.Contains(l.Guard, ":") {
				return nil, fmt.Errorf("%s: %q needs a guard as FILE:TEST", s.Title, l.Bounds)
			}
		}
	}
	return sheets, nil
}

var reason = regexp.MustCompile(`^[A-Z][A-Z0-9]*(_[A-Z0-9]+)+$`)

// guard is the test of a limit of the gateway, and why that is no end-to-end test.
type guard struct{ Test, Wire string }

func gatewaySheet(guards map[string]guard) *Sheet {
	s := &Sheet{Title: "Gateway"}
	for _, row := range limits.Table() {
		l := Limit{Bounds: row.Name, Value: row.Default, Per: row.Per, Key: row.Key, Metric: row.Metric, Do: strings.TrimPrefix(row.Action, "-"),
			Guard: guards[row.Name].Test, Wire: guards[row.Name].Wire}
		if reason.MatchString(row.Reason) {
			l.Reason = row.Reason
		} else {
			l.Then = row.Reason
		}
		s.Limits = append(s.Limits, l)
	}
	return s
}
