package peer

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
)

// Server names the services that a connection accepts.
type Server struct {
	Role string // "aggregator"
	Name string // of the only instance that is accepted; empty: any
}

func (s Server) String() string {
	if s.Name == "" {
		return "an instance of " + s.Role
	}
	return s.Role + " " + s.Name
}

// RootRelay is the root of the tree of relays.
var RootRelay = Server{Role: "relay", Name: "root"}

// ClientTLS returns the settings for connections to a service of the fleet: TLS 1.3, the server's chain to
// one of the roots, and the role and name in its URI. Host names are not verified, so a service may move. `roots` and
// `certificate` are called at each handshake, so that both may change.
func ClientTLS(server Server, roots func() *x509.CertPool, certificate func() (*tls.Certificate, error)) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		ServerName: "0.0.0.0", // an address: no server name is sent, because it would have no meaning
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return certificate()
		},
		// Not skipped: VerifyConnection verifies everything except the host name.
		InsecureSkipVerify: true,
		VerifyConnection: func(state tls.ConnectionState) error {
			own, err := certificate()
			if err != nil {
				return err
			}
			self, err := FromCertificate(own.Leaf)
			if err != nil {
				return err
			}
			return verifyServer(state, roots(), self.Fleet, server)
		},
	}
}

func verifyServer(state tls.ConnectionState, roots *x509.CertPool, fleet string, server Server) error {
	if len(state.PeerCertificates) == 0 {
		return errors.New("the server has no certificate")
	}
	intermediates := x509.NewCertPool()
	for _, certificate := range state.PeerCertificates[1:] {
		intermediates.AddCert(certificate)
	}
	_, err := state.PeerCertificates[0].Verify(x509.VerifyOptions{
		Roots:         roots,
		Intermediates: intermediates,
		KeyUsages:     []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
	if err != nil {
		return err
	}
	id, err := FromCertificate(state.PeerCertificates[0])
	if err != nil {
		return err
	}
	if id.Kind != Service || id.Role != server.Role || id.Fleet != fleet || (server.Name != "" && id.Name != server.Name) {
		return fmt.Errorf("the server is %s, not %s of %s", id.URI, server, fleet)
	}
	return nil
}
