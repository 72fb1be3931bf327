package peer

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
)

// ClientTLS makes the settings for dialling a service of the fleet: TLS 1.3, the server's chain up to
// one of the roots, and the role that its URI names. Host names play no part, so a service may move.
// `roots` and `certificate` are asked for at each handshake, so that both may change.
func ClientTLS(role string, roots func() *x509.CertPool, certificate func() (*tls.Certificate, error)) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		ServerName: "0.0.0.0", // an address: then no server name is sent, which would mean nothing
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return certificate()
		},
		// Not skipped: VerifyConnection does all of it, but for the host name.
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
		return errors.New("the server showed no certificate")
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
		return fmt.Errorf("the server is %s, wanted is a %s of %s", id.URI, role, fleet)
	}
	return nil
}
