package peer

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net/url"
	"testing"
	"time"
)

func TestServerIsAcceptedByItsRoleAndName(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	connected := func(uri string) (tls.ConnectionState, *x509.CertPool) {
		name, err := url.Parse(uri)
		if err != nil {
			t.Fatal(err)
		}
		template := &x509.Certificate{SerialNumber: big.NewInt(1), URIs: []*url.URL{name}, NotAfter: time.Now().Add(time.Hour),
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, IsCA: true, BasicConstraintsValid: true}
		der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
		if err != nil {
			t.Fatal(err)
		}
		certificate, err := x509.ParseCertificate(der)
		if err != nil {
			t.Fatal(err)
		}
		roots := x509.NewCertPool()
		roots.AddCert(certificate)
		return tls.ConnectionState{PeerCertificates: []*x509.Certificate{certificate}}, roots
	}
	for _, test := range []struct {
		uri      string
		server   Server
		accepted bool
	}{
		{"spiffe://f.muster/service/relay/root", RootRelay, true},
		{"spiffe://f.muster/service/relay/r1", RootRelay, false},
		{"spiffe://f.muster/service/relay/r1", Server{Role: "relay"}, true},
		{"spiffe://f.muster/service/gateway/root", RootRelay, false},
		{"spiffe://f.muster/node/root", RootRelay, false},
		{"spiffe://g.muster/service/relay/root", RootRelay, false},
	} {
		state, roots := connected(test.uri)
		if err := verifyServer(state, roots, "f.muster", test.server); (err == nil) != test.accepted {
			t.Errorf("%s as %+v: %v", test.uri, test.server, err)
		}
	}
	state, _ := connected("spiffe://f.muster/service/relay/root")
	if verifyServer(state, x509.NewCertPool(), "f.muster", RootRelay) == nil {
		t.Error("a server of another root was accepted")
	}
}
