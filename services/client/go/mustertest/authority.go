// Package mustertest is the shared code of tests of the Go parts: certificates as a fleet issues them, and an
// in-memory aggregator. For tests only.
package mustertest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Domain is the fleet's name.
const Domain = "fleet-01234567.muster"

// Authority is a CA.
type Authority struct {
	Certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	issuers     []*Authority // the chain to the root, without the root
}

// Fleet is a root CA with an intermediate CA.
type Fleet struct {
	Root, Intermediate *Authority
}

// Run is a run CA: one key, two certificates.
type Run struct {
	ID                 string
	SelfSigned, Signed *Authority
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func newKey() *ecdsa.PrivateKey { return must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)) }

// issue signs a template by a parent, or self-signs it.
func issue(template *x509.Certificate, key *ecdsa.PrivateKey, parent *Authority) *x509.Certificate {
	template.SerialNumber = must(rand.Int(rand.Reader, big.NewInt(1<<62)))
	if template.NotBefore.IsZero() {
		template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(24*time.Hour)
	}
	above, signer := template, key
	if parent != nil {
		above, signer = parent.Certificate, parent.key
	}
	return must(x509.ParseCertificate(must(x509.CreateCertificate(rand.Reader, template, above, &key.PublicKey, signer))))
}

func authority(name string, key *ecdsa.PrivateKey, parent *Authority, host string) *Authority {
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	if host != "" {
		template.PermittedURIDomains, template.PermittedDNSDomainsCritical = []string{host}, true
		template.MaxPathLenZero = true
	}
	a := &Authority{Certificate: issue(template, key, parent), key: key}
	if parent != nil {
		a.issuers = append([]*Authority{a}, parent.issuers...)
	}
	return a
}

// NewFleet creates a new root CA and intermediate CA.
func NewFleet() *Fleet {
	root := authority("fleet root", newKey(), nil, "")
	return &Fleet{Root: root, Intermediate: authority("fleet intermediate", newKey(), root, "")}
}

// NewRun creates a run CA.
func (f *Fleet) NewRun(id string) *Run {
	key := newKey()
	return &Run{ID: id, SelfSigned: authority("run "+id, key, nil, ""),
		Signed: authority("run "+id, key, f.Intermediate, id+"."+Domain)}
}

// Leaf creates a certificate with one URI for client and server, with its chain.
func (a *Authority) Leaf(uri string, change ...func(*x509.Certificate)) tls.Certificate {
	key := newKey()
	return a.certify(uri, key, change...)
}

func (a *Authority) certify(uri string, key *ecdsa.PrivateKey, change ...func(*x509.Certificate)) tls.Certificate {
	leaf := issue(leafTemplate(uri, change...), key, a)
	chain := [][]byte{leaf.Raw}
	for _, above := range a.issuers {
		chain = append(chain, above.Certificate.Raw)
	}
	return tls.Certificate{Certificate: chain, PrivateKey: key, Leaf: leaf}
}

func leafTemplate(uri string, change ...func(*x509.Certificate)) *x509.Certificate {
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: "leaf"}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
		URIs:        []*url.URL{must(url.Parse(uri))},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	for _, c := range change {
		c(template)
	}
	return template
}

// SignRequest signs a PKCS#10 request in PEM for one URI; the chain is in PEM, too.
func (a *Authority) SignRequest(csrPEM, uri string, change ...func(*x509.Certificate)) (chain string, err error) {
	block, _ := pem.Decode([]byte(csrPEM))
	if block == nil {
		return "", errors.New("not a certificate request")
	}
	csr, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return "", err
	}
	template := leafTemplate(uri, change...)
	template.SerialNumber = must(rand.Int(rand.Reader, big.NewInt(1<<62)))
	if template.NotBefore.IsZero() {
		template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(24*time.Hour)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.Certificate, csr.PublicKey, a.key)
	if err != nil {
		return "", err
	}
	text := toPEM(der)
	for _, above := range a.issuers {
		text += above.PEM()
	}
	return text, nil
}

func toPEM(der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

// PEM returns the CA's certificate.
func (a *Authority) PEM() string { return toPEM(a.Certificate.Raw) }

// Pool returns a pool of this CA only.
func (a *Authority) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.Certificate)
	return pool
}

// PEM returns a certificate's chain and its key (SEC1).
func PEM(c tls.Certificate) (chain, key string) {
	for _, der := range c.Certificate {
		chain += toPEM(der)
	}
	der := must(x509.MarshalECPrivateKey(c.PrivateKey.(*ecdsa.PrivateKey)))
	return chain, string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}))
}

// Folder writes a certificate as a service's tls/ folder.
func (f *Fleet) Folder(t testing.TB, c tls.Certificate) string {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "tls")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	chain, key := PEM(c)
	for name, text := range map[string]string{"key.pem": key, "cert.pem": chain, "ca.pem": f.Root.PEM()} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// Service creates the certificate of a service.
func (f *Fleet) Service(role, name string) tls.Certificate {
	return f.Intermediate.Leaf("spiffe://" + Domain + "/service/" + role + "/" + name)
}

// URI returns an identity of the run; the path is "plugin/P/node/N" and the like.
func (r *Run) URI(path string) string { return "spiffe://" + r.ID + "." + Domain + "/" + path }
