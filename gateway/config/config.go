// Package config reads the gateway's one configuration file.
package config

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// Config is what the file says; bind has what each field means.
type Config struct {
	Path string // of the file; empty: there was none

	StateFolder    string
	Listen         string
	InspectionPort int
	AddressesFile  string

	AggregatorTargets []string
	StatusTargets     []string
	RelayTargets      []string

	StatusListen  string
	StatusURLs    []string
	StatusPorts   string
	StatusOrigins []string

	LegacyBind       string
	LegacyPorts      string
	LegacyPort       int
	SupervisorSocket string

	Rudder Rudder

	LogFormat, LogLevel, LogFile string

	Hold, Drain         time.Duration
	ResultBytes         int64
	Connections         int
	DeliveryConnections int
}

// Default gives the values of fields that a file leaves out.
func Default() *Config {
	return &Config{
		Listen: "127.0.0.1:7443", AggregatorTargets: []string{"127.0.0.1:7440"}, StatusTargets: []string{"127.0.0.1:7441"},
		RelayTargets: []string{"127.0.0.1:7445"},
		StatusListen: "127.0.0.1:8002", StatusPorts: "8010-8109",
		LegacyBind: "127.0.0.1", LegacyPorts: "7450-7949", LegacyPort: 7449, LogFormat: "text", LogLevel: "info",
		Rudder: defaultRudder(),
		Hold:   time.Minute, Drain: 20 * time.Second, Connections: 4096, DeliveryConnections: 4,
	}
}

// bind gives the fields of the file, in its order.
func (c *Config) bind() *fields {
	f := &fields{program: "muster-gateway"}
	f.text("state_folder", &c.StateFolder, "Where the gateway keeps its certificate: tls/.", "an absolute path", filepath.IsAbs)
	f.address("listen", &c.Listen, "Where REST is served, over HTTPS. Port 0 takes a free one.")
	f.addresses("aggregator_targets", &c.AggregatorTargets, "Where the aggregator's gRPC is: host:port each.")
	f.addresses("status_targets", &c.StatusTargets,
		"Where the status service's gRPC is: host:port each. None: progress and status are not answered.")
	f.addresses("relay_targets", &c.RelayTargets,
		"Where the gRPC of the relay at the centre is: host:port each. None: jobs and attached nodes are answered 503.")
	f.address("status_listen", &c.StatusListen, "Where GET /status and the dashboard are served, over HTTPS. Port 0 takes a free one.")
	f.list("status_urls", &c.StatusURLs, "How browsers reach that: https://host:port each, the first stands in links. None: as in "+
		"status_listen.", "https://host:port", isHTTPS)
	f.ports("status_ports", &c.StatusPorts, "Ports of status listeners that runs have of their own. A run keeps its port.", "8010-8109")
	f.list("status_origins", &c.StatusOrigins, "Pages elsewhere that may read the status from a browser (CORS): https://host each. "+
		"None: no page may.", "https://host", isHTTPS)
	f.text("legacy_bind", &c.LegacyBind, "The local address of the runs' listeners for old clients. What clients are told is the "+
		"aggregator's `advertise` or `legacy_host`.", "an address, or a host name", func(given string) bool { return given != "" })
	f.ports("legacy_ports", &c.LegacyPorts, "Ports of runs that have one of their own. A run keeps its port.", "7450-7949")
	f.integer("legacy_port", &c.LegacyPort, "The port that runs share where the aggregator's `legacy_host` gives each a host name. "+
		"A run keeps its port. 0 takes a free one.", 0, 65535)
	f.text("supervisor_socket", &c.SupervisorSocket, "Unix socket of the supervisor that keeps listening sockets open over "+
		"restarts. Empty: the gateway opens them itself.", "text", nil)
	f.integer("inspection_port", &c.InspectionPort, "/metrics, /livez and /readyz on 127.0.0.1. 0 takes a free port.", 0, 65535)
	f.text("addresses_file", &c.AddressesFile, "Gets the addresses that were really taken, as JSON. Empty: none is written.", "text", nil)
	c.Rudder.bind(f)
	f.oneOf("log.format", &c.LogFormat, "How log lines look.", "text", "json")
	f.oneOf("log.level", &c.LogLevel, "What is logged: this and what is worse.", "debug", "info", "warning", "error")
	f.text("log.file", &c.LogFile, "Where the log goes. Empty: stderr.", "text", nil)
	f.duration("drain", &c.Drain, "How long a stop waits for deliveries and downloads under way.", 0, 10*time.Minute)
	f.duration("hold", &c.Hold, "How long a delivery waits while the aggregator is away, before the answer 503.", 0, time.Hour)
	f.byteSize("limits.result_bytes", &c.ResultBytes,
		"The largest result that an old client may deliver; a larger one is answered 413. 0: no limit but the aggregator's.", 1<<60)
	f.integer("limits.connections", &c.Connections, "Open connections of one port; more wait in the kernel's queue.", 1, 1_000_000)
	f.integer("limits.delivery_connections", &c.DeliveryConnections,
		"gRPC connections to the aggregator over which deliveries are spread.", 1, 64)
	return f
}

const maxFile = 1 << 20

// Load reads and checks a file. Its error names file, line and field of every mistake.
func Load(path string) (*Config, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	if len(content) > maxFile {
		return nil, fmt.Errorf("configuration: %s has more than 1 MiB", path)
	}
	config := Default()
	config.Path = path
	f := config.bind()
	if err = f.load(string(content), path); err == nil {
		err = config.check(path)
	}
	if err != nil {
		return nil, fmt.Errorf("%w\nCorrect the file; `muster-gateway --print-config` shows every field and what it may hold", err)
	}
	return config, nil
}

// check finds what a file has to say and does not.
func (c *Config) check(path string) error {
	var all []error
	if c.StateFolder == "" {
		all = append(all, fmt.Errorf("%s: state_folder: has no value; allowed: an absolute path", path))
	}
	if len(c.AggregatorTargets) == 0 {
		all = append(all, fmt.Errorf("%s: aggregator_targets: at least one is needed", path))
	}
	all = append(all, c.Rudder.check(path)...)
	return errors.Join(all...)
}

// Print gives a file with all fields, their meaning and the values of this configuration.
func (c *Config) Print() string {
	standard := Default()
	f := standard.bind()
	*standard = *c
	return f.printed()
}

// TLSFolder holds the gateway's key and certificate, and the fleet's root.
func (c *Config) TLSFolder() string { return filepath.Join(c.StateFolder, "tls") }

// StatusPortRange gives the first and the last port for status listeners of runs; 0, 0 for any.
func (c *Config) StatusPortRange() (first, last int, err error) { return parsePorts(c.StatusPorts) }

// StatusURL is how browsers reach the status listener that was bound to an address.
func (c *Config) StatusURL(bound string) string {
	if len(c.StatusURLs) > 0 {
		return c.StatusURLs[0]
	}
	return "https://" + bound
}

// LegacyPortRange gives the first and the last port for runs with one of their own; 0, 0 for any.
func (c *Config) LegacyPortRange() (first, last int, err error) { return parsePorts(c.LegacyPorts) }
