package fleet

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Authority is a stolen CA, of a run or of the fleet: its key.
type Authority struct {
	certificate *x509.Certificate // signed by the fleet
	key         any
	chain       string // the certificate and its chain
}

// StealAuthority reads the key of a run CA from the aggregator's folder, where it is encrypted with the store key (see
// services/common/identity/key_wrap.cc). `credential` is one of the run's.
func (f *Fleet) StealAuthority(credential *Credential) (*Authority, error) {
	folder := filepath.Join(f.Home, "aggregator")
	storeKey, err := os.ReadFile(filepath.Join(folder, "store.key"))
	if err != nil {
		return nil, err
	}
	key, err := hex.DecodeString(strings.TrimSpace(string(storeKey)))
	if err != nil {
		return nil, err
	}
	row, err := exec.Command("sqlite3", "-readonly", filepath.Join(folder, "state.db"),
		"SELECT hex(wrapped_key) FROM run_authorities WHERE run = '"+credential.Run+"'").Output()
	if err != nil {
		return nil, err
	}
	wrapped, err := hex.DecodeString(strings.TrimSpace(string(row)))
	if err != nil {
		return nil, err
	}
	plain, err := unwrap(key, wrapped, credential.Run)
	if err != nil {
		return nil, err
	}
	_, chain := pem.Decode([]byte(credential.Certificate)) // after the leaf
	block, _ := pem.Decode(chain)
	private, _ := pem.Decode(plain)
	if block == nil || private == nil {
		return nil, errors.New("a certificate or a key is not PEM")
	}
	a := &Authority{chain: string(chain)}
	if a.certificate, err = x509.ParseCertificate(block.Bytes); err != nil {
		return nil, err
	}
	a.key, err = x509.ParsePKCS8PrivateKey(private.Bytes)
	return a, err
}

// StealFleetAuthority reads the intermediate CA from the aggregator's folder: it signs any identity of the fleet.
func (f *Fleet) StealFleetAuthority() (*Authority, error) {
	folder := filepath.Join(f.Home, "aggregator")
	pair, err := tls.LoadX509KeyPair(filepath.Join(folder, "intermediate.crt"), filepath.Join(folder, "intermediate.key"))
	if err != nil {
		return nil, err
	}
	a := &Authority{key: pair.PrivateKey, chain: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]}))}
	a.certificate, err = x509.ParseCertificate(pair.Certificate[0])
	return a, err
}

func unwrap(key, wrapped []byte, run string) ([]byte, error) {
	const header, nonce = 9, 12
	if len(wrapped) < header+nonce {
		return nil, fmt.Errorf("the store has no run CA of run %s", run)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	sealed, err := cipher.NewGCM(block)
	if err != nil {
		return nil, err
	}
	return sealed.Open(nil, wrapped[header:header+nonce], wrapped[header+nonce:],
		[]byte("muster run authority key"+string(wrapped[:header])+run))
}

// Sign creates a credential like another one for any URI and any time.
func (a *Authority) Sign(like *Credential, uri string, from, to time.Time) (*Credential, error) {
	made := *like
	var err error
	made.Certificate, made.Key, err = a.Issue(uri, from, to)
	return &made, err
}

// Issue creates a certificate for any URI and any time, with its chain, and its key, in PEM.
func (a *Authority) Issue(uri string, from, to time.Time) (chain, key string, err error) {
	name, err := url.Parse(uri)
	if err != nil {
		return "", "", err
	}
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", "", err
	}
	leaf := &x509.Certificate{SerialNumber: big.NewInt(from.UnixNano()), Subject: pkix.Name{CommonName: "leaf"},
		URIs: []*url.URL{name}, NotBefore: from, NotAfter: to, AuthorityKeyId: a.certificate.SubjectKeyId,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, leaf, a.certificate, &private.PublicKey, a.key)
	if err != nil {
		return "", "", err
	}
	encoded, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		return "", "", err
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})) + a.chain,
		string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: encoded})), nil
}
