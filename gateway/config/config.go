// Package config reads the gateway's one configuration file.
package config

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"muster.example/gateway/limits"
)

// Config holds the values of the file; bind documents each field.
type Config struct {
	Path string // of the file; empty: no file

	StateFolder    string
	Listen         string
	InspectionPort int
	AddressesFile  string

	AggregatorTargets []string
	StatusTargets     []string
	RelayTargets      []string
	JobsTargets       []string

	StatusListen  string
	StatusURLs    []string
	StatusPorts   string
	StatusOrigins []string

	LegacyBind       string
	LegacyPorts      string
	LegacyPort       int
	SupervisorSocket string

	TunnelRelay, TunnelJoin    string // where tunnels lead; empty: none
	Tunnels, TunnelsPerAddress int

	Rudder Rudder

	LogFormat, LogLevel, LogFile string

	Hold, Drain          time.Duration
	ResultBytes          int64
	Connections          int // of one port: all, those of one address, and those of one identity
	PerAddress           int
	HandshakesPerAddress int
	PerIdentity          int
	DeliveryConnections  int
}

// Default returns the values of fields that a file leaves out.
func Default() *Config {
	return &Config{
		Listen: "127.0.0.1:7443", AggregatorTargets: []string{"127.0.0.1:7440"}, StatusTargets: []string{"127.0.0.1:7441"},
		RelayTargets: []string{"127.0.0.1:7445"}, JobsTargets: []string{"127.0.0.1:7446"},
		StatusListen: "127.0.0.1:8002", StatusPorts: "8010-8109",
		LegacyBind: "127.0.0.1", LegacyPorts: "7450-7949", LegacyPort: 7449, LogFormat: "text", LogLevel: "info",
		Rudder: defaultRudder(), Tunnels: limits.Tunnels, TunnelsPerAddress: limits.TunnelsOfAddress,
		Hold: limits.Hold, Drain: limits.Drain, ResultBytes: limits.ResultBytes, Connections: limits.Connections,
		PerAddress: limits.ConnectionsOfAddress, HandshakesPerAddress: limits.HandshakesOfAddress,
		PerIdentity: limits.ConnectionsOfIdentity, DeliveryConnections: limits.DeliveryConnections,
	}
}

// bind returns the fields of the file, in its order.
func (c *Config) bind() *fields {
	f := &fields{program: "muster-gateway"}
	f.text("state_folder", &c.StateFolder, "Folder of the gateway's certificate: tls/.", "an absolute path", filepath.IsAbs)
	f.address("listen", &c.Listen, "Address of REST, over HTTPS. Port 0 selects a free one.")
	f.addresses("aggregator_targets", &c.AggregatorTargets, "gRPC addresses of the aggregator: host:port each.")
	f.addresses("status_targets", &c.StatusTargets,
		"gRPC addresses of the status service: host:port each. None: progress and status are not available.")
	f.addresses("relay_targets", &c.RelayTargets,
		"gRPC addresses of the root relay: host:port each. None: requests for jobs and attached nodes get 503.")
	f.addresses("jobs_targets", &c.JobsTargets,
		"gRPC addresses of the jobs service: host:port each. None: requests for templates and deployments get 503.")
	f.address("status_listen", &c.StatusListen, "Address of GET /status and the dashboard, over HTTPS. Port 0 selects a free one.")
	f.list("status_urls", &c.StatusURLs, "URLs at which browsers reach it: https://host:port each; links use the first. None: as in "+
		"status_listen.", "https://host:port", isHTTPS)
	f.ports("status_ports", &c.StatusPorts, "Ports of separate status listeners of runs. A run keeps its port.", "8010-8109")
	f.list("status_origins", &c.StatusOrigins, "Origins of other pages that may read the status from a browser (CORS): https://host each. "+
		"None: no other page.", "https://host", isHTTPS)
	f.text("legacy_bind", &c.LegacyBind, "The local address of the runs' listeners for legacy clients. Clients are given the "+
		"aggregator's `advertise` or `legacy_host`.", "an address, or a host name", func(given string) bool { return given != "" })
	f.ports("legacy_ports", &c.LegacyPorts, "Ports of runs with a separate port. A run keeps its port.", "7450-7949")
	f.integer("legacy_port", &c.LegacyPort, "The port that runs share if the aggregator's `legacy_host` gives each a host name. "+
		"A run keeps its port. 0 selects a free one.", 0, 65535)
	f.text("supervisor_socket", &c.SupervisorSocket, "Unix socket of the supervisor that keeps listening sockets open over "+
		"restarts. Empty: the gateway opens them itself.", "text", nil)
	f.integer("inspection_port", &c.InspectionPort, "/metrics, /livez and /readyz on 127.0.0.1. 0 selects a free port.", 0, 65535)
	f.text("addresses_file", &c.AddressesFile, "File for the addresses that were bound, as JSON. Empty: none is written.", "text", nil)
	f.optionalAddress("tunnel_relay", &c.TunnelRelay, "Address of the root relay's gRPC listener, to which the status listener connects the "+
		"tunnels of agents and relays behind proxies that pass no HTTP/2. Empty: there are none.")
	f.optionalAddress("tunnel_join", &c.TunnelJoin, "The same of the listener for machines without a certificate (join_listen of the aggregator).")
	c.Rudder.bind(f)
	f.oneOf("log.format", &c.LogFormat, "Format of log lines.", "text", "json")
	f.oneOf("log.level", &c.LogLevel, "Lowest level that is logged.", "debug", "info", "warning", "error")
	f.text("log.file", &c.LogFile, "File of the log. Empty: stderr.", "text", nil)
	f.duration("drain", &c.Drain, "How long a stop waits for deliveries and downloads in progress.", 0, 10*time.Minute)
	f.duration("hold", &c.Hold, "How long a delivery waits for an unreachable aggregator before it fails with 503.", 0, time.Hour)
	f.byteSize("limits.result_bytes", &c.ResultBytes,
		"The largest result that a legacy client may deliver; a larger one gets 413. 0: only the aggregator's limit applies.", 1<<60)
	f.integer("limits.connections", &c.Connections, "Maximum of open connections of one port; more wait in the kernel's queue.", 1, 1_000_000)
	f.integer("limits.connections_per_address", &c.PerAddress, "Maximum of open connections of one address of a client on one port "+
		"(IPv6: one network /64); more are closed. Raise it if many clients come through one proxy or one address translation (NAT).",
		1, 1_000_000)
	f.integer("limits.handshakes_per_address", &c.HandshakesPerAddress, "Maximum of simultaneous TLS handshakes of one address of a client "+
		"(IPv6: one network /64) on one port; more wait. Raise it with connections_per_address.", 1, limits.Handshakes)
	f.integer("limits.connections_per_identity", &c.PerIdentity, "Maximum of open connections of one identity on one port; more get "+
		"TOO_MANY_CONNECTIONS. Credentials of a run that many clients share (viewers, any node) have no such limit.", 1, 1_000_000)
	f.integer("limits.tunnels", &c.Tunnels, "Maximum of open tunnels.", 1, 1_000_000)
	f.integer("limits.tunnels_per_address", &c.TunnelsPerAddress, "Maximum of open tunnels of one address of a client (IPv6: one network "+
		"/64). Raise it if many nodes come through one proxy.", 1, 1_000_000)
	f.integer("limits.delivery_connections", &c.DeliveryConnections,
		"Number of gRPC connections to the aggregator for deliveries.", 1, 64)
	return f
}

// Load reads and checks a file. Its error has the file, line and field of every mistake.
func Load(path string) (*Config, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, limits.ConfigFile+1))
	if err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	if int64(len(content)) > limits.ConfigFile {
		return nil, fmt.Errorf("configuration: %s is larger than 1 MiB", path)
	}
	config := Default()
	config.Path = path
	f := config.bind()
	if err = f.load(string(content), path); err == nil {
		err = config.check(path)
	}
	if err != nil {
		return nil, fmt.Errorf("%w\nCorrect the file; `muster-gateway --print-config` prints every field with its allowed values", err)
	}
	return config, nil
}

// check finds required fields without a value.
func (c *Config) check(path string) error {
	var all []error
	if c.StateFolder == "" {
		all = append(all, fmt.Errorf("%s: state_folder: has no value; allowed: an absolute path", path))
	}
	if len(c.AggregatorTargets) == 0 {
		all = append(all, fmt.Errorf("%s: aggregator_targets: at least one is required", path))
	}
	all = append(all, c.Rudder.check(path)...)
	return errors.Join(all...)
}

// Print returns a file with all fields, their meaning and the values of this configuration.
func (c *Config) Print() string {
	standard := Default()
	f := standard.bind()
	*standard = *c
	return f.printed()
}

// TLSFolder holds the gateway's key and certificate, and the fleet's root.
func (c *Config) TLSFolder() string { return filepath.Join(c.StateFolder, "tls") }

// StatusPortRange returns the first and the last port for status listeners of runs; 0, 0 for any.
func (c *Config) StatusPortRange() (first, last int, err error) { return parsePorts(c.StatusPorts) }

// StatusURL returns the URL at which browsers reach a status listener bound to an address.
func (c *Config) StatusURL(bound string) string {
	if len(c.StatusURLs) > 0 {
		return c.StatusURLs[0]
	}
	return "https://" + bound
}

// LegacyPortRange returns the first and the last port for runs with a separate port; 0, 0 for any.
func (c *Config) LegacyPortRange() (first, last int, err error) { return parsePorts(c.LegacyPorts) }
