package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func load(t *testing.T, content string) (*Config, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "gateway.yaml")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return Load(path)
}

func TestPrintedDefaultsLoadAsDefaults(t *testing.T) {
	uncommented := strings.ReplaceAll(Default().Print(), "\n# ", "\n#")
	var lines []string
	for _, line := range strings.Split(uncommented, "\n") {
		if key, _, ok := strings.Cut(strings.TrimPrefix(line, "#"), ":"); ok && !strings.Contains(key, " ") {
			line = strings.TrimPrefix(line, "#")
		}
		lines = append(lines, line)
	}
	config, err := load(t, strings.Join(lines, "\n"))
	if err != nil {
		t.Fatal(err)
	}
	if config.Listen != Default().Listen || config.Hold != time.Minute || len(config.AggregatorTargets) != 1 {
		t.Errorf("got %+v", config)
	}
	if !filepath.IsAbs(config.TLSDir) {
		t.Errorf("tls_dir %q does not start at the file's folder", config.TLSDir)
	}
}

func TestPrintShowsWhatDiffers(t *testing.T) {
	config := Default()
	config.Hold = 5 * time.Second
	text := config.Print()
	if !strings.Contains(text, "\nhold: 5s\n") || !strings.Contains(text, "\n# drain: 20s\n") {
		t.Error(text)
	}
}

func TestMistakesAreNamed(t *testing.T) {
	for content, want := range map[string]string{
		"listen: x":                         ":1: listen: \"x\" is not an address host:port",
		"\nlisten_: 127.0.0.1:1":            ":2: unknown key \"listen_\"",
		"hold: fast":                        ":1: hold: cannot understand \"fast\": want a time such as 60s",
		"hold: 1s\nhold: 2s":                "hold",
		"max_connections: many":             ":1: max_connections: cannot understand \"many\": want a whole number",
		"aggregator_targets: []":            ":1: aggregator_targets: at least one is needed",
		"aggregator_targets: [a]":           ":1: aggregator_targets: \"a\" is not an address",
		"legacy_ports: 9-7":                 ":1: legacy_ports: want a port, a range",
		"log_level: loud":                   ":1: log_level: want debug",
		"- a":                               ":1: want keys and values",
		"listen: [":                         "gateway.yaml",
		"inspection_listen: 127.0.0.1:9999": "",
	} {
		_, err := load(t, content)
		switch {
		case want == "" && err != nil:
			t.Errorf("%q: %v", content, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%q: got %v, want %q", content, err, want)
		}
	}
}
