package muster

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"time"

	"muster.example/services/client/go/peer"
)

// Config is the output of `muster credentials export`: targets, credentials and limits of a delivery. The
// tags name the fields of the JSON file and the environment variables (the first non-empty one is used).
// Variables override the file.
type Config struct {
	// GRPCTargets are addresses "host:port" of Muster's API, tried in turn.
	GRPCTargets []string `json:"grpc_targets,omitempty" env:"MUSTER_GRPC_TARGETS"`
	// StatusTargets are the same for heartbeats and progress.
	StatusTargets []string `json:"status_targets,omitempty" env:"MUSTER_STATUS_TARGETS"`
	// AggregatorURL is "https://host:port" of the run's listener for legacy clients, used if GRPCTargets is
	// empty. Its path is ignored.
	AggregatorURL string `json:"aggregator_url,omitempty" env:"AGGREGATOR_URL,MASTER_URL"`
	// Run, Plugin and Node identify the result; Run and Node may be omitted if the certificate names them.
	Run    string `json:"run,omitempty" env:"MUSTER_RUN"`
	Plugin string `json:"plugin,omitempty" env:"RESULT_TYPE"`
	Node   string `json:"node,omitempty" env:"NODE_NAME"`
	// FleetCA is the root CA of the targets, CA that of AggregatorURL; both in PEM.
	FleetCA string `json:"fleet_ca_cert,omitempty" env:"MUSTER_FLEET_CA_CERT"`
	CA      string `json:"ca_cert,omitempty" env:"CA_CERT"`
	// ClientCert is the certificate followed by its chain to the fleet's root CA, in PEM.
	ClientCert string `json:"client_cert,omitempty" env:"CLIENT_CERT"`
	// ClientKey is the key in PEM; ClientKeyFile is the path of a file of mode 0600 with it.
	ClientKey     string `json:"client_key,omitempty" env:"CLIENT_KEY"`
	ClientKeyFile string `json:"client_key_file,omitempty" env:"MUSTER_CLIENT_KEY_FILE"`
	// ResultsDir is the folder of the done file; DoneFileDelay is how long the file has to exist before it is
	// used.
	ResultsDir    string   `json:"results_dir,omitempty" env:"SONOBUOY_RESULTS_DIR,RESULTS_DIR"`
	DoneFileDelay Duration `json:"done_file_delay,omitempty" env:"SONOBUOY_DONE_FILE_DELAY"`
	// Deadline is the run's: the worker fails 120 s later, or when its certificate expires.
	Deadline time.Time `json:"deadline,omitzero" env:"MUSTER_DEADLINE"`
	// MaxResultBytes is the largest result; a larger one is replaced by an error result.
	MaxResultBytes int64 `json:"max_result_bytes,omitempty" env:"MUSTER_MAX_RESULT_BYTES"`

	certificate *tls.Certificate
}

// Duration is a time.Duration written as "5s" or "1m30s".
type Duration time.Duration

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Duration) UnmarshalText(text []byte) error {
	value, err := time.ParseDuration(string(text))
	if err == nil && (value < 0 || value > 365*24*time.Hour) {
		err = errors.New("want a time such as 5s")
	}
	*d = Duration(value)
	return err
}

// String implements fmt.Stringer.
func (d Duration) String() string { return time.Duration(d).String() }

// MarshalText implements encoding.TextMarshaler.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// The fields of the same file that only the agent or the C++ library use.
var otherFields = []string{"mode", "module", "definition", "time_limit", "max_output_bytes", "progress_port", "state_dir"}

// LoadConfig reads a JSON file (if a path is given) and then the environment, and checks the configuration.
// Errors name the file and the field, or the variable.
func LoadConfig(path string) (*Config, error) {
	config := &Config{
		ResultsDir: "/tmp/sonobuoy/results", DoneFileDelay: Duration(5 * time.Second), MaxResultBytes: 1 << 40,
	}
	if path != "" {
		if err := config.readFile(path); err != nil {
			return nil, err
		}
	}
	nodeFromEnvironment, err := config.readEnvironment(os.Getenv)
	if err != nil {
		return nil, err
	}
	if err := config.complete(nodeFromEnvironment); err != nil {
		return nil, err
	}
	return config, nil
}

func (c *Config) readFile(path string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("cannot read the configuration: %w", err)
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(content, &members); err != nil {
		return fmt.Errorf("%s: want one JSON object: %w", path, err)
	}
	for _, name := range otherFields {
		delete(members, name)
	}
	fields, value := map[string]reflect.Value{}, reflect.ValueOf(c).Elem()
	for i := range value.NumField() {
		if name, _, _ := strings.Cut(value.Type().Field(i).Tag.Get("json"), ","); name != "" {
			fields[name] = value.Field(i)
		}
	}
	for name, member := range members {
		field, known := fields[name]
		if !known {
			return fmt.Errorf("%s: %s: no such field; docs/agent.md lists all", path, name)
		}
		if bytes.Equal(member, []byte("null")) || json.Unmarshal(member, field.Addr().Interface()) != nil {
			return fmt.Errorf("%s: %s: the value is not %s", path, name, wanted(field))
		}
	}
	return nil
}

func wanted(field reflect.Value) string {
	switch field.Interface().(type) {
	case []string:
		return "a list of strings"
	case Duration:
		return `a duration such as "5s"`
	case time.Time:
		return `a time such as "2026-11-21T14:00:00Z"`
	case int64:
		return "a whole number"
	}
	return "a string"
}

func (c *Config) readEnvironment(get func(string) string) (node bool, err error) {
	value := reflect.ValueOf(c).Elem()
	for i := range value.NumField() {
		for _, variable := range strings.Split(value.Type().Field(i).Tag.Get("env"), ",") {
			if variable == "" || get(variable) == "" {
				continue
			}
			text, field := get(variable), value.Field(i)
			switch target := field.Addr().Interface().(type) {
			case *string:
				*target = text
				node = node || target == &c.Node
			case *[]string:
				*target = strings.Split(text, ",")
			case interface{ UnmarshalText([]byte) error }:
				err = target.UnmarshalText([]byte(text))
			case *int64:
				err = json.Unmarshal([]byte(text), target)
			}
			if err != nil {
				return node, fmt.Errorf("environment: %s: the value is not %s", variable, wanted(field))
			}
			break
		}
	}
	return node, nil
}

// complete checks the configuration, and sets values that follow from the certificate.
func (c *Config) complete(nodeFromEnvironment bool) error {
	if c.ClientKey == "" && c.ClientKeyFile != "" {
		key, err := readSecret(c.ClientKeyFile)
		if err != nil {
			return fmt.Errorf("client_key_file: %w", err)
		}
		c.ClientKey = key
	}
	pair, err := tls.X509KeyPair([]byte(c.ClientCert), []byte(c.ClientKey))
	if err != nil {
		return fmt.Errorf("client_cert and client_key: %w", err)
	}
	if time.Now().After(pair.Leaf.NotAfter) {
		return fmt.Errorf("client_cert: expired at %s: export a new one", pair.Leaf.NotAfter.Format(time.RFC3339))
	}
	c.certificate = &pair
	// A certificate without an identity of Muster is allowed.
	if id, err := peer.FromCertificate(pair.Leaf); err == nil {
		if c.Run == "" {
			c.Run = id.Run
		}
		// The environment of an old sidecar names the machine even if its plugin runs once.
		if id.Kind == peer.PluginNode && (c.Node == "" || (id.PlanNode == Global && nodeFromEnvironment)) {
			c.Node = id.PlanNode
		}
	}
	if c.Node == "" {
		c.Node = Global
	}
	switch {
	case c.Plugin == "":
		return errors.New("plugin (RESULT_TYPE) is missing")
	case len(c.GRPCTargets) == 0 && c.AggregatorURL == "":
		return errors.New("grpc_targets or aggregator_url (AGGREGATOR_URL) is required")
	case len(c.GRPCTargets) > 0 && !x509.NewCertPool().AppendCertsFromPEM([]byte(c.FleetCA)):
		return errors.New("fleet_ca_cert: no certificate found")
	case len(c.GRPCTargets) > 0 && c.Run == "":
		return errors.New("run is missing, and the certificate does not name one")
	case len(c.GRPCTargets) == 0 && !x509.NewCertPool().AppendCertsFromPEM([]byte(c.CA)):
		return errors.New("ca_cert (CA_CERT): no certificate found")
	case len(c.GRPCTargets) == 0 && !strings.HasPrefix(c.AggregatorURL, "https://"):
		return fmt.Errorf("aggregator_url: %q does not begin with https://", c.AggregatorURL)
	}
	return nil
}

func readSecret(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if info.Mode().Perm()&0o077 != 0 {
		return "", fmt.Errorf("%s is readable by others: chmod 600 it", path)
	}
	content, err := os.ReadFile(path)
	return string(content), err
}

// pool returns a pool of the leading certificates of a PEM text.
func pool(text string) *x509.CertPool {
	certificates := x509.NewCertPool()
	certificates.AppendCertsFromPEM([]byte(text))
	return certificates
}

// leafOnly removes what a legacy listener does not need.
func leafOnly(c *tls.Certificate) tls.Certificate {
	only := *c
	only.Certificate = c.Certificate[:1]
	return only
}
