// Package command has attached nodes run what the gateway is asked for: it signs commands with an identity of the
// gateway's own, hands them to the relay at the centre, and gives what comes of them.
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

// prefix is what a signature covers before the command itself.
const prefix = "muster-command-v1\n"

const issueTime = 30 * time.Second

// Signer holds a key that never leaves this process, and the certificate that the fleet's command authority gave for
// it. At half of its life it is replaced together with the key, by the next who signs. Safe for concurrent use.
type Signer struct {
	identities musterv1.IdentityServiceClient
	now        func() time.Time

	mu      sync.Mutex
	key     ed25519.PrivateKey
	chain   string
	half    time.Time // of the certificate's life
	expires time.Time
}

// NewSigner makes one that asks the aggregator when it is first needed.
func NewSigner(identities musterv1.IdentityServiceClient) *Signer {
	return &Signer{identities: identities, now: time.Now}
}

// Sign gives a command as it travels.
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

// identity gives the key and its certificate. A certificate that cannot be replaced is used to its end.
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

// renew has a new key certified. The lock is held.
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
		return errors.New("the aggregator gave no certificate")
	}
	leaf, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return err
	}
	if certified, fits := leaf.PublicKey.(ed25519.PublicKey); !fits || !certified.Equal(public) {
		return errors.New("the aggregator gave a certificate for another key")
	}
	s.key, s.chain, s.expires = key, issued.CertificateChainPem, leaf.NotAfter
	s.half = leaf.NotBefore.Add(leaf.NotAfter.Sub(leaf.NotBefore) / 2)
	return nil
}
