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

// problems returns the lines of the error, without the folder and the advice.
func problems(t *testing.T, content string) string {
	t.Helper()
	_, err := load(t, "state_folder: /s\n"+content)
	if err == nil {
		return ""
	}
	lines := strings.Split(err.Error(), "\n")
	for i := range lines {
		lines[i] = lines[i][strings.LastIndex(lines[i][:strings.Index(lines[i]+":", ":")], "/")+1:]
	}
	return strings.Join(lines[:len(lines)-1], "\n")
}

func TestPrintedConfigLoadsUnchanged(t *testing.T) {
	config := Default()
	config.StateFolder, config.LogLevel, config.Hold, config.ResultBytes = "/a: b #c", "warning", 50*time.Minute, 3<<20
	config.StatusTargets, config.LegacyPort, config.Listen = []string{"a:1", "[::1]:2"}, 443, "[::]:7443"
	text := config.Print()
	again, err := load(t, text)
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	if got := again.Print(); got != text {
		t.Errorf("printed\n%s\nread back as\n%s", text, got)
	}
	if again.TLSFolder() != "/a: b #c/tls" {
		t.Error(again.TLSFolder())
	}
}

// The format is that of the C++ services (services/common/base/config.h).
func TestPrintedConfigHasCommentsRangesAndValues(t *testing.T) {
	config := Default()
	config.Hold, config.LogLevel = 5*time.Second, "debug"
	text := config.Print()
	for _, want := range []string{
		"# Configuration of muster-gateway.\n\n# Folder of the gateway's certificate: tls/.\n# Allowed: an absolute path\nstate_folder: \"\"\n",
		"from 0s to 1h; default: 1m\nhold: 5s\n",
		"\nlog:\n  # Format of log lines.\n  # Allowed: text, json\n  format: text\n\n  # Lowest",
		"; default: info\n  level: debug\n",
		"\nlimits:\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

func TestConfigErrorsNameLineAndField(t *testing.T) {
	for content, want := range map[string]string{
		"":                                    "",
		"log:\n":                              "",
		"inspection_port: 9999":               "",
		"limits: {result_bytes: 1TiB}":        "",
		"listen: x":                           `gateway.yaml:2: listen: "x" is not valid; allowed: host:port, with IPv6 as [::1]:port`,
		"\nlisten_: 127.0.0.1:1":              "gateway.yaml:3: listen_: no such field; did you mean listen?",
		"level: info":                         "gateway.yaml:2: level: no such field; did you mean log.level?",
		"logs: {level: info}":                 "gateway.yaml:2: logs: no such field; did you mean log?",
		"zebra: 1":                            "gateway.yaml:2: zebra: no such field",
		"hold: fast":                          `gateway.yaml:2: hold: "fast" is not valid; allowed: a time such as 30s or 5m, from 0s to 1h`,
		"hold: 1s\nhold: 2s":                  "gateway.yaml:3: hold: given twice, first in line 2",
		"log: {level: info}\nlog.level: info": "gateway.yaml:3: log.level: given twice, first in line 2",
		"log: 5":                              "gateway.yaml:2: log: must hold a group of fields",
		"log: {level: loud}":                  `gateway.yaml:2: log.level: "loud" is not valid; allowed: debug, info, warning, error`,
		"limits: {connections: many}":         `gateway.yaml:2: limits.connections: "many" is not valid; allowed: a whole number from 1 to 1000000`,
		"limits: {result_bytes: 5KB}":         `gateway.yaml:2: limits.result_bytes: "5KB" is not valid; allowed: bytes such as 64KiB or 4MiB, from 0 to 1048576TiB`,
		"legacy_port: 70000":                  `gateway.yaml:2: legacy_port: "70000" is not valid; allowed: a whole number from 0 to 65535`,
		"legacy_ports: 9-7":                   `gateway.yaml:2: legacy_ports: "9-7" is not valid; allowed: a port, a range such as 7450-7949, or 0 for any`,
		"aggregator_targets: []":              "gateway.yaml: aggregator_targets: at least one is required",
		"aggregator_targets: [a]":             `gateway.yaml:2: aggregator_targets: "a" is not valid; allowed: a list, each element host:port`,
		"aggregator_targets: a:1":             "gateway.yaml:2: aggregator_targets: cannot be a single value; allowed: a list, each element host:port",
		"rudder: {remote_run: yes}":           `gateway.yaml:2: rudder.remote_run: "yes" is not valid; allowed: true, false`,
		"rudder: {networks: [10.0.0.1]}":      `gateway.yaml:2: rudder.networks: "10.0.0.1" is not valid; allowed: a list, each element a network such as 192.0.2.0/24`,
		"rudder: {listen: 127.0.0.1:1, key_file: /k}": "gateway.yaml: rudder.certificate_file: has no value, but rudder.listen is set",
		"rudder: {listen: 127.0.0.1:1, certificate_file: /c, key_file: /k, dialect: extended, shared_files: '', shared_files_nodes: ''}": "gateway.yaml: " +
			"rudder.shared_files_nodes: has no value, but rudder.listen is set",
		"rudder: {dialect: loose}":      `gateway.yaml:2: rudder.dialect: "loose" is not valid; allowed: strict, extended`,
		"listen:":                       "gateway.yaml:2: listen: has no value; allowed: host:port, with IPv6 as [::1]:port",
		"listen: [a]":                   "gateway.yaml:2: listen: has the wrong kind of value; allowed: host:port, with IPv6 as [::1]:port",
		"listen: {a: 1}":                "gateway.yaml:2: listen: cannot be a group of fields; allowed: host:port, with IPv6 as [::1]:port",
		"listen: a:1\n---\nlisten: b:1": "gateway.yaml:1: the file holds more than one document",
		"{[a]: b}":                      "gateway.yaml: invalid YAML: yaml: line 2: could not find expected ':'",
		"hold: x\ndrain: y\nzebra: 1": `gateway.yaml:2: hold: "x" is not valid; allowed: a time such as 30s or 5m, from 0s to 1h` + "\n" +
			`gateway.yaml:3: drain: "y" is not valid; allowed: a time such as 30s or 5m, from 0s to 10m` + "\n" + "gateway.yaml:4: zebra: no such field",
	} {
		if got := problems(t, content); got != want {
			t.Errorf("%q:\n got %q\nwant %q", content, got, want)
		}
	}
	for content, want := range map[string]string{
		"- a":                        "gateway.yaml:1: the file must hold fields",
		"listen: 127.0.0.1:1":        "gateway.yaml: state_folder: has no value",
		"state_folder: s":            `gateway.yaml:1: state_folder: "s" is not valid; allowed: an absolute path`,
		"listen: [":                  "invalid YAML",
		"? [a]\n: b":                 "gateway.yaml:1: a field's name must be plain text",
		strings.Repeat("[", 100_000): "gateway.yaml",
		"listen: " + strings.Repeat("x", 100_000): "gateway.yaml:1: listen",
		strings.Repeat("# \n", 1<<20):             "larger than 1 MiB",
	} {
		if _, err := load(t, content); err == nil || !strings.Contains(err.Error(), want) || len(err.Error()) > 600 {
			t.Errorf("%.40q: got %.600v, want %q", content, err, want)
		}
	}
}
