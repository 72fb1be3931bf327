// Package fleet holds the gateway's identity in the fleet: its certificate, the root CA it trusts, and the revocations.
package fleet

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"muster.example/services/client/go/peer"
)

// Keystore is a folder with key.pem, cert.pem (leaf first, then its chain) and ca.pem. The pair in use was always
// verified; a damaged or half-written pair on disk changes nothing. Safe for concurrent use.
type Keystore struct {
	folder string
	now    func() time.Time
	state  atomic.Pointer[material]
}

// material is one set of matching files.
type material struct {
	certificate *tls.Certificate
	roots       *x509.CertPool
	identity    peer.Identity
	files       [3][]byte
}

var fileNames = [3]string{"key.pem", "cert.pem", "ca.pem"}

// Open reads the folder. It finishes a renewal that a crash interrupted.
func Open(folder string) (*Keystore, error) {
	k := &Keystore{folder: folder, now: time.Now}
	if _, err := k.repair(); err != nil {
		return nil, err
	}
	return k, nil
}

// repair is Reload, after it has finished a Publish that was interrupted or failed.
func (k *Keystore) repair() (bool, error) {
	if err := k.finishPublish(); err != nil {
		return false, err
	}
	return k.Reload()
}

// Identity returns the gateway's identity, which includes the fleet's name.
func (k *Keystore) Identity() peer.Identity { return k.state.Load().identity }

// Roots returns the fleet's root CA.
func (k *Keystore) Roots() *x509.CertPool { return k.state.Load().roots }

// Certificate returns the gateway's certificate; Leaf is set.
func (k *Keystore) Certificate() (*tls.Certificate, error) { return k.state.Load().certificate, nil }

// ServerTLS returns the settings of a listener with the gateway's certificate. Clients' certificates must chain to the
// fleet's root CA, or to one of `more`. A renewed certificate is used from the next handshake on; the caller may set
// another GetCertificate before the first. TLS 1.2 is allowed for browsers.
func (k *Keystore) ServerTLS(auth tls.ClientAuthType, more ...*x509.Certificate) *tls.Config {
	base := &tls.Config{
		MinVersion: tls.VersionTLS12, ClientAuth: auth, NextProtos: []string{"h2", "http/1.1"},
		GetCertificate:         func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return k.Certificate() },
		SessionTicketsDisabled: true, // a resumed session would not be verified against today's CAs
	}
	base.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		now := base.Clone()
		now.ClientCAs = k.Roots().Clone()
		for _, authority := range more {
			now.ClientCAs.AddCert(authority)
		}
		return now, nil
	}
	return base
}

// Reload loads the files if they changed and are valid; it reports whether it did. On an error the old ones remain in
// use.
func (k *Keystore) Reload() (bool, error) {
	var files [3][]byte
	for i, name := range fileNames {
		content, err := os.ReadFile(filepath.Join(k.folder, name))
		if err != nil {
			return false, fmt.Errorf("cannot read the gateway's identity: %w", err)
		}
		files[i] = content
	}
	if old := k.state.Load(); old != nil && bytes.Equal(old.files[0], files[0]) &&
		bytes.Equal(old.files[1], files[1]) && bytes.Equal(old.files[2], files[2]) {
		return false, nil
	}
	checked, err := check(files, k.now())
	if err != nil {
		return false, fmt.Errorf("%s: %w", k.folder, err)
	}
	k.state.Store(checked)
	return true, nil
}

// check rejects files that do not match, and a certificate that does not name a gateway of the fleet.
func check(files [3][]byte, now time.Time) (*material, error) {
	pair, err := tls.X509KeyPair(files[1], files[0])
	if err != nil {
		return nil, fmt.Errorf("key.pem and cert.pem: %w", err)
	}
	roots, err := parseRoots(files[2])
	if err != nil {
		return nil, fmt.Errorf("ca.pem: %w", err)
	}
	intermediates := x509.NewCertPool()
	for _, der := range pair.Certificate[1:] {
		certificate, err := x509.ParseCertificate(der)
		if err != nil {
			return nil, fmt.Errorf("cert.pem: %w", err)
		}
		intermediates.AddCert(certificate)
	}
	_, err = pair.Leaf.Verify(x509.VerifyOptions{
		Roots: roots, Intermediates: intermediates, CurrentTime: now,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
	if err != nil {
		return nil, fmt.Errorf("cert.pem does not chain to ca.pem: %w", err)
	}
	identity, err := peer.FromCertificate(pair.Leaf)
	if err != nil {
		return nil, fmt.Errorf("cert.pem: %w", err)
	}
	if identity.Kind != peer.Service || identity.Role != "gateway" {
		return nil, fmt.Errorf("cert.pem is for %s, not for a gateway", identity.URI)
	}
	return &material{certificate: &pair, roots: roots, identity: identity, files: files}, nil
}

func parseRoots(text []byte) (*x509.CertPool, error) {
	all, err := ParseCertificates(text)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	for _, certificate := range all {
		roots.AddCert(certificate)
	}
	return roots, nil
}

// ParseCertificates returns all certificates of a PEM text, at least one. It is strict: AppendCertsFromPEM would skip
// what it cannot parse.
func ParseCertificates(text []byte) ([]*x509.Certificate, error) {
	var all []*x509.Certificate
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		all = append(all, certificate)
	}
	if len(all) == 0 {
		return nil, errors.New("no certificate found")
	}
	return all, nil
}

// Publish replaces key and certificate such that a crash at any point leaves a pair that Open accepts. The new pair is
// in use afterwards, also if ca.pem cannot be read now.
func (k *Keystore) Publish(key, certificate []byte) error {
	checked, err := check([3][]byte{key, certificate, k.state.Load().files[2]}, k.now())
	if err != nil {
		return fmt.Errorf("the renewed certificate is invalid: %w", err)
	}
	// Otherwise the only certificate of key.pem could be overwritten.
	if err := k.finishPublish(); err != nil {
		return err
	}
	for i, content := range [][]byte{key, certificate} {
		if err := writeSynced(filepath.Join(k.folder, fileNames[i]+".new"), content); err != nil {
			return err
		}
	}
	// The key is written first: finishPublish assumes that a leftover cert.pem.new belongs to key.pem.
	if err := k.rename("key.pem"); err != nil {
		return err
	}
	if err := k.rename("cert.pem"); err != nil {
		return err
	}
	k.state.Store(checked)
	return nil
}

// finishPublish completes a Publish that ended between its two renames.
func (k *Keystore) finishPublish() error {
	read := func(name string) []byte {
		content, _ := os.ReadFile(filepath.Join(k.folder, name))
		return content
	}
	if _, err := tls.X509KeyPair(read("cert.pem"), read("key.pem")); err == nil {
		return nil
	}
	if _, err := tls.X509KeyPair(read("cert.pem.new"), read("key.pem")); err != nil {
		return nil // nothing to finish: Reload reports what is wrong
	}
	return k.rename("cert.pem")
}

// rename moves name.new to name durably.
func (k *Keystore) rename(name string) error {
	path := filepath.Join(k.folder, name)
	if err := os.Rename(path+".new", path); err != nil {
		return err
	}
	folder, err := os.Open(k.folder)
	if err != nil {
		return err
	}
	defer folder.Close()
	return folder.Sync()
}

func writeSynced(path string, content []byte) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	return errors.Join(err, file.Sync(), file.Close())
}
