package main

import (
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"time"
)

// config is the configuration in the environment.
type config struct {
	resultURL, progressURL string
	resultsDir             string
	progressPort           string
	doneFileDelay          time.Duration
	client                 *http.Client
}

func loadConfig(perNode bool) (*config, error) {
	c := &config{
		resultsDir:   firstSet("SONOBUOY_RESULTS_DIR", "RESULTS_DIR"),
		progressPort: firstSet("SONOBUOY_PROGRESS_PORT"),
	}
	if c.resultsDir == "" {
		c.resultsDir = "/tmp/sonobuoy/results"
	}
	if c.progressPort == "" {
		c.progressPort = "8099"
	}
	delay := firstSet("SONOBUOY_DONE_FILE_DELAY")
	if delay == "" {
		delay = "5s"
	}
	var err error
	if c.doneFileDelay, err = time.ParseDuration(delay); err != nil {
		return nil, err
	}
	plugin := os.Getenv("RESULT_TYPE")
	if plugin == "" {
		return nil, errors.New("RESULT_TYPE is not set")
	}
	base, err := url.Parse(firstSet("AGGREGATOR_URL", "MASTER_URL"))
	if err != nil || base.Host == "" {
		return nil, fmt.Errorf("AGGREGATOR_URL is not an address: %v", err)
	}
	tail := "/global/" + plugin
	if perNode {
		tail = "/by-node/" + os.Getenv("NODE_NAME") + "/" + plugin
	}
	at := func(path string) string { // the path of the address is replaced
		return (&url.URL{Scheme: base.Scheme, Host: base.Host, Path: path}).String()
	}
	c.resultURL, c.progressURL = at("/api/v1/results"+tail), at("/api/v1/progress"+tail)
	c.client, err = newClient(os.Getenv("CA_CERT"), os.Getenv("CLIENT_CERT"), os.Getenv("CLIENT_KEY"))
	return c, err
}

// newClient trusts only the first certificate of ca and sends only the first of certificate. It accepts only a SEC1 key
// as the first block. With custom settings Go's transport offers no ALPN; for an IP address it sends no server name; it
// uses no proxy.
func newClient(ca, certificate, key string) (*http.Client, error) {
	caBlock, _ := pem.Decode([]byte(ca))
	certificateBlock, _ := pem.Decode([]byte(certificate))
	keyBlock, _ := pem.Decode([]byte(key))
	if caBlock == nil || certificateBlock == nil || keyBlock == nil {
		return nil, errors.New("CA_CERT, CLIENT_CERT and CLIENT_KEY have to be PEM")
	}
	root, err := x509.ParseCertificate(caBlock.Bytes)
	if err != nil {
		return nil, fmt.Errorf("CA_CERT: %w", err)
	}
	private, err := x509.ParseECPrivateKey(keyBlock.Bytes)
	if err != nil {
		return nil, fmt.Errorf("CLIENT_KEY: %w", err)
	}
	return &http.Client{Transport: &http.Transport{TLSClientConfig: clientTLS(root, certificateBlock.Bytes, private)}}, nil
}

func clientTLS(root *x509.Certificate, certificate []byte, key *ecdsa.PrivateKey) *tls.Config {
	pool := x509.NewCertPool()
	pool.AddCert(root)
	return &tls.Config{
		RootCAs:      pool,
		Certificates: []tls.Certificate{{Certificate: [][]byte{certificate}, PrivateKey: key}},
	}
}

func firstSet(names ...string) string {
	for _, name := range names {
		if value := os.Getenv(name); value != "" {
			return value
		}
	}
	return ""
}
