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

func setValue(lines []string, name, value string) bool {
	section, key, nested := strings.Cut(name, ".")
	for i, line := range lines {
		switch {
		case nested && line == section+":":
			nested, section = false, "  "+key
		case !nested && strings.HasPrefix(line, section+": "):
			lines[i] = section + ": " + value
			return true
		}
	}
	return false
}
