package peer

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
)

// ClientTLS returns the settings for connections to a service of the fleet: TLS 1.3, the server's chain to
// one of the roots, and the role in its URI. Host names are not verified, so a service may move. `roots` and
// `certificate` are called at each handshake, so that both may change.
func ClientTLS(role string, roots func() *x509.CertPool, certificate func() (*tls.Certificate, error)) *tls.Config {
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
			return verifyServer(state, roots(), self.Fleet, role)
		},
	}
}

func verifyServer(state tls.ConnectionState, roots *x509.CertPool, fleet, role string) error {
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
	if id.Kind != Service || id.Role != role || id.Fleet != fleet {
		return fmt.Errorf("the server is %s, not an instance of %s of %s", id.URI, role, fleet)
	}
	return nil
}
