package fleet

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Configure sets values of a service ("status") by their names in its file ("heartbeats.interval"), and restarts the
// fleet.
func (f *Fleet) Configure(service string, values map[string]string) error {
	file := filepath.Join(f.Home, "config", service+".yaml")
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	lines := strings.Split(string(text), "\n")
	for name, value := range values {
		if !setValue(lines, name, value) {
			return fmt.Errorf("%s has no %s", file, name)
		}
	}
	_, err = f.Muster("down")
	return errors.Join(err, os.WriteFile(file, []byte(strings.Join(lines, "\n")), 0o600), f.Up())
}

// setValue sets "a.b.c": the c below the b below the a.
func setValue(lines []string, name, value string) bool {
	groups := strings.Split(name, ".")
	for i, line := range lines {
		switch {
		case len(groups) > 1 && line == groups[0]+":":
			indent := line[:len(line)-len(strings.TrimLeft(line, " "))] + "  "
			groups = groups[1:]
			groups[0] = indent + groups[0]
		case len(groups) == 1 && strings.HasPrefix(line, groups[0]+": "):
			lines[i] = groups[0] + ": " + value
			return true
		}
	}
	return false
}
