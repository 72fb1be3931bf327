// Package command runs jobs on attached nodes for the gateway: it signs commands with the gateway's own signing
// certificate, submits them to the root relay, and returns their records.
package command

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	musterv1 "muster.example/proto/gen/go/muster/v1"
)

// prefix precedes the command in the signed bytes.
const prefix = "muster-command-v1\n"

const issueTime = 30 * time.Second

// Signer holds a key that never leaves this process, and its signing certificate. The first signature after half of the
// certificate's validity replaces both. Safe for concurrent use.
type Signer struct {
	identities musterv1.IdentityServiceClient
	now        func() time.Time

	mu      sync.Mutex
	key     ed25519.PrivateKey
	chain   string
	half    time.Time // half of the certificate's validity
	expires time.Time
}

// NewSigner creates a signer that requests a certificate when it is first needed.
func NewSigner(identities musterv1.IdentityServiceClient) *Signer {
	return &Signer{identities: identities, now: time.Now}
}

// Sign returns a command in its signed form.
func (s *Signer) Sign(ctx context.Context, command *musterv1.Command) (*musterv1.SignedCommand, error) {
	key, chain, err := s.identity(ctx)
	if err != nil {
		return nil, fmt.Errorf("the gateway has no certificate to sign commands with: %w", err)
	}
	text, err := proto.Marshal(command)
	if err != nil {
		return nil, err
	}
	return &musterv1.SignedCommand{
		Command: text, Signature: sign(key, text), CertificateChainPem: chain,
	}, nil
}

func sign(key ed25519.PrivateKey, command []byte) []byte {
	return ed25519.Sign(key, append([]byte(prefix), command...))
}

// identity returns the key and its certificate. A certificate that cannot be replaced is used until it expires.
func (s *Signer) identity(ctx context.Context) (ed25519.PrivateKey, string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := s.now(); now.After(s.half) {
		if err := s.renew(ctx); err != nil && !now.Before(s.expires) {
			return nil, "", err
		}
	}
	return s.key, s.chain, nil
}

// renew requests a certificate for a new key. The lock is held.
func (s *Signer) renew(ctx context.Context) error {
	public, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return err
	}
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, issueTime)
	defer cancel()
	issued, err := s.identities.IssueCommandCertificate(ctx, &musterv1.IssueCommandCertificateRequest{
		PublicKeyPem: string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))})
	if err != nil {
		return err
	}
	block, _ := pem.Decode([]byte(issued.CertificateChainPem))
	if block == nil {
		return errors.New("the aggregator returned no certificate")
	}
	leaf, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return err
	}
	if certified, fits := leaf.PublicKey.(ed25519.PublicKey); !fits || !certified.Equal(public) {
		return errors.New("the aggregator returned a certificate for another key")
	}
	s.key, s.chain, s.expires = key, issued.CertificateChainPem, leaf.NotAfter
	s.half = leaf.NotBefore.Add(leaf.NotAfter.Sub(leaf.NotBefore) / 2)
	return nil
}
