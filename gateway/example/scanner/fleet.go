package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"
)

// maxAnswer bounds the bytes of one response of the API.
const maxAnswer = 1 << 20

// fleet is the access of an operator to a Muster fleet.
type fleet struct {
	url    string
	client *http.Client
}

// openFleet reads an operator's context.
func openFleet(file string) (*fleet, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var c struct {
		URLs  []string `json:"gateway_urls"`
		CA    string   `json:"fleet_ca_pem"`
		Chain string   `json:"certificate_chain_pem"`
		Key   string   `json:"private_key_pem"`
	}
	if err := json.Unmarshal(content, &c); err != nil {
		return nil, fmt.Errorf("%s is not a valid context: %w", file, err)
	}
	if len(c.URLs) == 0 {
		return nil, errors.New(file + " has no gateway")
	}
	certificate, err := tls.X509KeyPair([]byte(c.Chain), []byte(c.Key))
	if err != nil {
		return nil, err
	}
	client, err := newClient(c.CA, certificate)
	return &fleet{strings.TrimSuffix(c.URLs[0], "/"), client}, err
}

// newClient creates a client that trusts one CA and has one certificate.
func newClient(ca string, certificate tls.Certificate) (*http.Client, error) {
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM([]byte(ca)) {
		return nil, errors.New("the CA is not a PEM certificate")
	}
	return &http.Client{Transport: &http.Transport{
		TLSClientConfig:       &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots, Certificates: []tls.Certificate{certificate}},
		ResponseHeaderTimeout: 30 * time.Second,
		IdleConnTimeout:       90 * time.Second,
		ForceAttemptHTTP2:     true,
	}}, nil
}

// start creates a run and returns its id.
func (f *fleet) start(ctx context.Context, plugins, nodes []string) (string, error) {
	var run struct {
		ID string `json:"id"`
	}
	err := f.post(ctx, "/api/v1/runs", map[string]any{"title": "scanner", "plugins": plugins, "nodes": nodes}, &run)
	return run.ID, err
}

// viewer reads the status of one run. It keeps its key and certificate in memory.
type viewer struct {
	url    string
	client *http.Client
}

// viewer requests a certificate for the status of this run only. The key is generated here and never leaves the
// process.
func (f *fleet) viewer(ctx context.Context, run string) (*viewer, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	request, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	if err != nil {
		return nil, err
	}
	var issued struct {
		Certificate string `json:"certificatePem"`
		Chain       string `json:"chainPem"`
		CA          string `json:"serverCaPem"`
		Address     string `json:"hostAddress"`
	}
	body := map[string]any{"csrPem": string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: request}))}
	if err := f.post(ctx, "/api/v1/runs/"+run+"/viewers", body, &issued); err != nil {
		return nil, err
	}
	certificate := tls.Certificate{PrivateKey: key}
	for rest := []byte(issued.Certificate + issued.Chain); ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		certificate.Certificate = append(certificate.Certificate, block.Bytes)
	}
	client, err := newClient(issued.CA, certificate)
	return &viewer{strings.TrimSuffix(issued.Address, "/") + "/status", client}, err
}

// close drops the viewer's connections.
func (v *viewer) close() { v.client.CloseIdleConnections() }

// open requests the status; the caller closes the response's body. `accept` may select events.
func (v *viewer) open(ctx context.Context, accept string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, v.url, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", accept)
	return v.client.Do(request)
}

func (f *fleet) post(ctx context.Context, path string, body, answer any) error {
	content, err := json.Marshal(body)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, f.url+path, bytes.NewReader(content))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := f.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	said, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return err
	}
	if response.StatusCode == http.StatusOK {
		return json.Unmarshal(said, answer)
	}
	var problem struct {
		Message  string `json:"message"`
		NextStep string `json:"next_step"`
	}
	if json.Unmarshal(said, &problem) != nil || problem.Message == "" {
		return fmt.Errorf("%s answered %s", path, response.Status)
	}
	return &refusal{response.StatusCode, problem.Message, problem.NextStep}
}

// refusal is an error of the API.
type refusal struct {
	code              int
	message, nextStep string
}

func (r *refusal) Error() string { return r.message + " " + r.nextStep }
