package fleet

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
)

// Credential is the output of `muster credentials export --format json`: the permission to deliver.
type Credential struct {
	Run           string   `json:"run"`
	Plugin        string   `json:"plugin"`
	Node          string   `json:"node"`
	GRPCTargets   []string `json:"grpc_targets"`
	StatusTargets []string `json:"status_targets"`
	AggregatorURL string   `json:"aggregator_url"`
	FleetCA       string   `json:"fleet_ca_cert"`
	CA            string   `json:"ca_cert"`
	Certificate   string   `json:"client_cert"`
	Key           string   `json:"client_key"`
	Deadline      string   `json:"deadline,omitempty"`  // set by hand only
	StateDir      string   `json:"state_dir,omitempty"` // set by hand only

	File string `json:"-"` // its path
}

// Export exports a credential for a node, or, for the node "", one for any node of the plugin.
func (f *Fleet) Export(run, plugin, node string) (*Credential, error) {
	whose := []string{"--node", node}
	if node == "" {
		whose = []string{"--any-node"}
	}
	text, err := f.Muster(append([]string{"credentials", "export", run, "--plugin", plugin, "--format", "json"}, whose...)...)
	if err != nil {
		return nil, err
	}
	file, err := os.CreateTemp(f.Home, "credential-*.json") // mode 0600
	if err != nil {
		return nil, err
	}
	_, err = file.WriteString(text)
	credential := &Credential{File: file.Name()}
	return credential, errors.Join(err, file.Close(), json.Unmarshal([]byte(text), credential))
}

// HTTP returns a client of the run's listener for legacy clients: HTTP/1.1, a new connection for each request.
func (c *Credential) HTTP() (*http.Client, error) {
	certificate, err := tls.X509KeyPair([]byte(c.Certificate), []byte(c.Key))
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM([]byte(c.CA)) {
		return nil, errors.New("ca_cert has no certificate")
	}
	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true,
		TLSClientConfig: &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{certificate}}}}, nil
}

// GRPC connects to the aggregator with this credential.
func (c *Credential) GRPC() (*grpc.ClientConn, error) {
	return dial(c.GRPCTargets[0], c.FleetCA, c.Certificate, c.Key, tls.VersionTLS13)
}

// Operator is the context file of an operator.
type Operator struct {
	Fleet       string   `json:"fleet"`
	Aggregator  []string `json:"aggregator_targets"`
	Status      []string `json:"status_targets"`
	Gateway     []string `json:"gateway_urls"`
	Relay       []string `json:"relay_targets"`
	FleetCA     string   `json:"fleet_ca_pem"`
	Certificate string   `json:"certificate_chain_pem"`
	Key         string   `json:"private_key_pem"`
}

// GRPC connects to the aggregator as this operator. `version` is the highest allowed TLS version.
func (o *Operator) GRPC(version uint16) (*grpc.ClientConn, error) {
	return dial(o.Aggregator[0], o.FleetCA, o.Certificate, o.Key, version)
}

func dial(target, root, certificate, key string, version uint16) (*grpc.ClientConn, error) {
	config, err := fleetTLS(root, certificate, key, version)
	if err != nil {
		return nil, err
	}
	return grpc.NewClient("passthrough:///"+target, grpc.WithTransportCredentials(credentials.NewTLS(config)))
}

// Dial connects to a service of the operator's fleet with a certificate and its key in PEM, or with none.
func (o *Operator) Dial(target, certificate, key string, options ...grpc.DialOption) (*grpc.ClientConn, error) {
	config, err := fleetTLS(o.FleetCA, o.Certificate, o.Key, tls.VersionTLS13)
	if err != nil {
		return nil, err
	}
	config.Certificates = nil
	if certificate != "" {
		pair, err := tls.X509KeyPair([]byte(certificate), []byte(key))
		if err != nil {
			return nil, err
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return grpc.NewClient("passthrough:///"+target, append(options, grpc.WithTransportCredentials(credentials.NewTLS(config)))...)
}

// fleetTLS verifies the server's chain; host names are not verified between services.
func fleetTLS(root, certificate, key string, version uint16) (*tls.Config, error) {
	pair, err := tls.X509KeyPair([]byte(certificate), []byte(key))
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM([]byte(root)) {
		return nil, errors.New("the fleet's root CA is not a certificate")
	}
	return &tls.Config{
		Certificates: []tls.Certificate{pair}, MaxVersion: version, InsecureSkipVerify: true,
		VerifyConnection: func(state tls.ConnectionState) error { return verify(state, pool) },
	}, nil
}

func verify(state tls.ConnectionState, roots *x509.CertPool) error {
	between := x509.NewCertPool()
	for _, certificate := range state.PeerCertificates[1:] {
		between.AddCert(certificate)
	}
	_, err := state.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: roots, Intermediates: between})
	return err
}

// WriteCredential writes a credential to the home as `muster credentials export` would.
func (f *Fleet) WriteCredential(name string, credential *Credential) (string, error) {
	text, err := json.Marshal(credential)
	if err != nil {
		return "", err
	}
	return f.WriteFile(name, string(text))
}

// WriteFile writes a file with this text to the home.
func (f *Fleet) WriteFile(name, text string) (string, error) {
	path := filepath.Join(f.Home, name)
	return path, os.WriteFile(path, []byte(text), 0o600)
}

// CreateRun creates a run with the CLI; the arguments are those of `muster run`.
func (f *Fleet) CreateRun(arguments ...string) (string, error) {
	var run struct{ ID string }
	if err := f.JSON(&run, append([]string{"run"}, arguments...)...); err != nil {
		return "", err
	}
	if len(run.ID) != 16 {
		return "", fmt.Errorf("`muster run` returned the id %q", run.ID)
	}
	return run.ID, nil
}

// Agent runs the agent with a credential to its end.
func (f *Fleet) Agent(ctx context.Context, credential *Credential) error {
	_, err := f.Run(ctx, "agent", "--config", credential.File)
	return err
}

// Operator reads the default context of this home.
func (f *Fleet) Operator() (*Operator, error) {
	text, err := os.ReadFile(filepath.Join(f.Home, "context.json"))
	if err != nil {
		return nil, err
	}
	var operator Operator
	return &operator, json.Unmarshal(text, &operator)
}

// HTTP returns a client of the gateway as this operator.
func (o *Operator) HTTP() (*http.Client, error) {
	config, err := fleetTLS(o.FleetCA, o.Certificate, o.Key, tls.VersionTLS13)
	if err != nil {
		return nil, err
	}
	return &http.Client{Transport: &http.Transport{TLSClientConfig: config}}, nil
}
