// Package config reads the gateway's one configuration file.
package config

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// Config is the file; the tags say what `--print-config` prints above each key.
type Config struct {
	Listen           string `yaml:"listen" doc:"Address of the HTTPS listener for REST. Port 0: any free one."`
	InspectionListen string `yaml:"inspection_listen" doc:"Address of /metrics, /livez and /readyz, in plain HTTP: keep it on loopback."`
	TLSDir           string `yaml:"tls_dir" doc:"Folder with key.pem, cert.pem (with what leads to the root) and ca.pem (the fleet's root). Renewed certificates are\nwritten here. A relative path starts at this file's folder; so do the other paths."`

	AggregatorTargets []string `yaml:"aggregator_targets" doc:"Addresses host:port of the aggregator."`
	StatusTargets     []string `yaml:"status_targets" doc:"Addresses host:port of the status service. None: progress and status are answered 503."`

	LegacyHost       string `yaml:"legacy_host" doc:"Where the listeners of runs are bound, for old clients. The addresses that clients are told are the aggregator's matter."`
	LegacyPorts      string `yaml:"legacy_ports" doc:"Ports for them: a range such as 7450-7549, or 0 for any free one. A run keeps its port."`
	SupervisorSocket string `yaml:"supervisor_socket" doc:"Unix socket of the supervisor that keeps listening sockets open over restarts. Empty: the gateway opens them itself."`
	AddressesFile    string `yaml:"addresses_file" doc:"Where to write the addresses that were really bound, as JSON. Empty: nowhere."`

	Hold                time.Duration `yaml:"hold" doc:"How long a delivery waits while the aggregator is away, before the answer 503."`
	Drain               time.Duration `yaml:"drain" doc:"How long deliveries and downloads may take to end after SIGTERM."`
	MaxResultBytes      int64         `yaml:"max_result_bytes" doc:"The largest result that an old client may deliver; a larger one is answered 413. 0: no limit but the aggregator's."`
	MaxConnections      int           `yaml:"max_connections" doc:"Open connections of one listener; more wait in the kernel's queue."`
	DeliveryConnections int           `yaml:"delivery_connections" doc:"gRPC connections to the aggregator over which deliveries are spread."`

	LogLevel  string `yaml:"log_level" doc:"debug, info, warn or error."`
	LogFormat string `yaml:"log_format" doc:"json or text."`
}

// Default gives the values of keys that a file leaves out.
func Default() *Config {
	return &Config{
		Listen: "127.0.0.1:7443", InspectionListen: "127.0.0.1:0", TLSDir: "tls",
		AggregatorTargets: []string{"127.0.0.1:7440"}, StatusTargets: []string{"127.0.0.1:7441"},
		LegacyHost: "127.0.0.1", LegacyPorts: "0",
		Hold: time.Minute, Drain: 20 * time.Second, MaxConnections: 4096, DeliveryConnections: 4,
		LogLevel: "info", LogFormat: "json",
	}
}

// Load reads and checks a file. Its errors name file, line and key.
func Load(path string) (*Config, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read the configuration: %w", err)
	}
	config := Default()
	if err := config.parse(path, content); err != nil {
		return nil, err
	}
	for _, p := range []*string{&config.TLSDir, &config.SupervisorSocket, &config.AddressesFile} {
		if *p != "" && !filepath.IsAbs(*p) {
			*p = filepath.Join(filepath.Dir(path), *p)
		}
	}
	return config, nil
}

func (c *Config) parse(path string, content []byte) error {
	var document yaml.Node
	if err := yaml.Unmarshal(content, &document); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	lines := map[string]int{}
	if len(document.Content) > 0 {
		root := document.Content[0]
		if root.Kind != yaml.MappingNode {
			return fmt.Errorf("%s:%d: want keys and values", path, root.Line)
		}
		fields := c.fields()
		for i := 0; i < len(root.Content); i += 2 {
			key, value := root.Content[i], root.Content[i+1]
			field, known := fields[key.Value]
			if !known {
				return fmt.Errorf("%s:%d: unknown key %q; muster-gateway --print-config prints all keys", path, key.Line, key.Value)
			}
			if lines[key.Value] != 0 {
				return fmt.Errorf("%s:%d: %s is given a second time", path, key.Line, key.Value)
			}
			lines[key.Value] = key.Line
			if err := value.Decode(field.Addr().Interface()); err != nil {
				return fmt.Errorf("%s:%d: %s: cannot understand %q: want %s", path, value.Line, key.Value, value.Value, wanted(field.Type()))
			}
		}
	}
	var all []error
	for _, problem := range c.problems() {
		place := path
		if line := lines[problem.key]; line != 0 {
			place = fmt.Sprintf("%s:%d", path, line)
		}
		all = append(all, fmt.Errorf("%s: %s: %s", place, problem.key, problem.text))
	}
	return errors.Join(all...)
}

func wanted(t reflect.Type) string {
	switch {
	case t == reflect.TypeFor[time.Duration]():
		return "a time such as 60s"
	case t.Kind() == reflect.Slice:
		return "a list such as [\"127.0.0.1:7443\"]"
	case t.Kind() == reflect.String:
		return "a text"
	}
	return "a whole number"
}

func (c *Config) fields() map[string]reflect.Value {
	fields, value := map[string]reflect.Value{}, reflect.ValueOf(c).Elem()
	for i := range value.NumField() {
		fields[value.Type().Field(i).Tag.Get("yaml")] = value.Field(i)
	}
	return fields
}

type problem struct{ key, text string }

func (c *Config) problems() (found []problem) {
	check := func(bad bool, key, text string) {
		if bad {
			found = append(found, problem{key, text})
		}
	}
	address := func(key, value string) {
		_, port, err := net.SplitHostPort(value)
		_, portErr := strconv.ParseUint(port, 10, 16)
		check(err != nil || portErr != nil, key, fmt.Sprintf("%q is not an address host:port", value))
	}
	address("listen", c.Listen)
	address("inspection_listen", c.InspectionListen)
	check(len(c.AggregatorTargets) == 0, "aggregator_targets", "at least one is needed")
	for _, target := range c.AggregatorTargets {
		address("aggregator_targets", target)
	}
	for _, target := range c.StatusTargets {
		address("status_targets", target)
	}
	check(c.TLSDir == "", "tls_dir", "must not be empty")
	_, _, err := c.PortRange()
	check(err != nil, "legacy_ports", fmt.Sprint(err))
	check(c.Hold < 0 || c.Hold > time.Hour, "hold", "want 0s to 1h")
	check(c.Drain < 0 || c.Drain > time.Hour, "drain", "want 0s to 1h")
	check(c.MaxResultBytes < 0, "max_result_bytes", "must not be negative")
	check(c.MaxConnections < 1, "max_connections", "at least 1 is needed")
	check(c.DeliveryConnections < 1 || c.DeliveryConnections > 64, "delivery_connections", "want 1 to 64")
	check(!oneOf(c.LogLevel, "debug", "info", "warn", "error"), "log_level", "want debug, info, warn or error")
	check(!oneOf(c.LogFormat, "json", "text"), "log_format", "want json or text")
	return found
}

func oneOf(value string, values ...string) bool {
	for _, v := range values {
		if v == value {
			return true
		}
	}
	return false
}

// PortRange gives the first and the last port for listeners of runs; 0, 0 for any.
func (c *Config) PortRange() (first, last int, err error) {
	low, high, isRange := strings.Cut(c.LegacyPorts, "-")
	if !isRange {
		high = low
	}
	a, errLow := strconv.ParseUint(strings.TrimSpace(low), 10, 16)
	b, errHigh := strconv.ParseUint(strings.TrimSpace(high), 10, 16)
	if errLow != nil || errHigh != nil || a > b || (a == 0 && b != 0) {
		return 0, 0, errors.New("want a port, a range such as 7450-7549, or 0")
	}
	return int(a), int(b), nil
}

// Print gives a file with all keys, their meaning and the values of this configuration.
func (c *Config) Print() string {
	var out strings.Builder
	out.WriteString("# Configuration of muster-gateway. Values that are commented out are the defaults.\n")
	value := reflect.ValueOf(c).Elem()
	for i := range value.NumField() {
		field := value.Type().Field(i)
		fmt.Fprintf(&out, "\n# %s\n", strings.ReplaceAll(field.Tag.Get("doc"), "\n", "\n# "))
		mark := ""
		if reflect.DeepEqual(value.Field(i).Interface(), reflect.ValueOf(Default()).Elem().Field(i).Interface()) {
			mark = "# "
		}
		text, _ := yaml.Marshal(map[string]any{field.Tag.Get("yaml"): flow(value.Field(i).Interface())})
		out.WriteString(mark + string(text))
	}
	return out.String()
}

// flow writes a list on one line.
func flow(value any) any {
	list, ok := value.([]string)
	if !ok {
		return value
	}
	node := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
	for _, item := range list {
		node.Content = append(node.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: item, Style: yaml.DoubleQuotedStyle})
	}
	return node
}
