package fleet

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"google.golang.org/grpc"
)

// Viewer is the credentials file of a run, in the original design's form: the permission to read its status.
type Viewer struct {
	Address     string `json:"host_address"`
	CreatedAt   string `json:"created_at"`
	CA          string `json:"ca_cert"`
	Certificate string `json:"client_cert"`
	Key         string `json:"client_key"`
}

// Shown is the answer to GET /status: the fields of the original design, and other fields that tests check.
type Shown struct {
	Status          string      `json:"status"`
	PercentComplete *float64    `json:"percent_complete"`
	Plugins         []ShownPair `json:"plugins"`
	Run             string      `json:"run"`
	StateReason     string      `json:"state_reason"`
	Counts          struct {
		Planned  int `json:"planned"`
		Pending  int `json:"pending"`
		Genuine  int `json:"genuine"`
		Errors   int `json:"errors"`
		TimedOut int `json:"timed_out"`
	} `json:"counts"`
}

// ShownPair is one plugin on one node. The node "" is the whole fleet.
type ShownPair struct {
	Name          string `json:"name"`
	Node          string `json:"node"`
	Status        string `json:"status"`
	LastHeartbeat *int   `json:"last-heartbeat"`
	Presence      string `json:"state"`
	Reason        string `json:"reason"`
	Detail        string `json:"detail"`
	Error         string `json:"error"`
	Message       string `json:"message"`
	Progress      *struct {
		Total     int      `json:"total"`
		Completed int      `json:"completed"`
		Failures  []string `json:"failures"`
	} `json:"progress"`
}

// Pair returns a pair, or an empty one if it does not exist.
func (s *Shown) Pair(plugin, node string) ShownPair {
	for _, pair := range s.Plugins {
		if pair.Name == plugin && pair.Node == node {
			return pair
		}
	}
	return ShownPair{}
}

// CredentialsFile returns the path of a run's credentials file of `muster run`.
func (f *Fleet) CredentialsFile(run string) string {
	return filepath.Join(f.Home, "credentials", run+".json")
}

// ReadViewer reads a credentials file.
func ReadViewer(file string) (*Viewer, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	viewer := &Viewer{}
	return viewer, json.Unmarshal(text, viewer)
}

// HTTP returns a client with this credential. It verifies the server with only `ca_cert`.
func (v *Viewer) HTTP() (*http.Client, error) {
	certificate, err := tls.X509KeyPair([]byte(v.Certificate), []byte(v.Key))
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM([]byte(v.CA)) {
		return nil, errors.New("ca_cert has no certificate")
	}
	return &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true,
		TLSClientConfig: &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{certificate}}}}, nil
}

// Status requests GET /status.
func (v *Viewer) Status() (*Shown, error) {
	client, err := v.HTTP()
	if err != nil {
		return nil, err
	}
	response, err := client.Get(strings.TrimSuffix(v.Address, "/") + "/status")
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("GET /status: %s: %s", response.Status, body)
	}
	shown := &Shown{}
	return shown, json.Unmarshal(body, shown)
}

// StatusGRPC connects to the status service as this operator.
func (o *Operator) StatusGRPC() (*grpc.ClientConn, error) {
	return dial(o.Status[0], o.FleetCA, o.Certificate, o.Key, tls.VersionTLS13)
}

// RelayGRPC connects to the root relay as this operator.
func (o *Operator) RelayGRPC() (*grpc.ClientConn, error) {
	return dial(o.Relay[0], o.FleetCA, o.Certificate, o.Key, tls.VersionTLS13)
}
