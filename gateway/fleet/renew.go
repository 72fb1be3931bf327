package fleet

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"log/slog"
	"time"

	musterv1 "muster.example/proto/gen/go/muster/v1"
)

// NewKey generates a P-256 key and a certificate request for it, both in PEM. The signer sets the names.
func NewKey() (keyPEM, csrPEM []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, nil, err
	}
	csr, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	if err != nil {
		return nil, nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER}),
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: csr}), nil
}

// Events are callbacks for metrics of the certificate.
type Events struct {
	Expires func(time.Time)
	Failed  func()
}

const (
	reloadInterval = 10 * time.Second
	renewRetry     = time.Minute
)

// Maintain watches the files and renews the certificate at half of its validity, until the context is done. Files that
// cannot be loaded do not prevent the renewal, which replaces them.
func (k *Keystore) Maintain(ctx context.Context, identities musterv1.IdentityServiceClient, log *slog.Logger, events Events) {
	tick := time.NewTicker(reloadInterval)
	defer tick.Stop()
	var lastTry time.Time
	var lastFault string
	for {
		changed, err := k.repair()
		if err == nil && changed {
			log.Info("certificate reloaded", "expires", k.state.Load().certificate.Leaf.NotAfter)
		}
		leaf := k.state.Load().certificate.Leaf
		half := leaf.NotBefore.Add(leaf.NotAfter.Sub(leaf.NotBefore) / 2)
		if k.now().After(half) && time.Since(lastTry) >= renewRetry {
			lastTry = time.Now()
			if fault := k.renew(ctx, identities); fault != nil {
				err = errors.Join(err, fault)
			} else {
				err = nil
				log.Info("certificate renewed", "expires", k.state.Load().certificate.Leaf.NotAfter)
			}
		}
		if err != nil && ctx.Err() == nil {
			events.Failed()
			if err.Error() != lastFault {
				log.Error("certificate not replaced, the old one remains in use", "error", err, "expires", leaf.NotAfter)
			}
			lastFault = err.Error()
		}
		events.Expires(k.state.Load().certificate.Leaf.NotAfter)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// renew requests a certificate for a new key, and publishes both.
func (k *Keystore) renew(ctx context.Context, identities musterv1.IdentityServiceClient) error {
	key, csr, err := NewKey()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	issued, err := identities.RenewCertificate(ctx, &musterv1.RenewCertificateRequest{CsrPem: string(csr)})
	if err != nil {
		return err
	}
	return k.Publish(key, []byte(issued.CertificateChainPem))
}
