package mustertest

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"net/url"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	musterv1 "muster.example/proto/gen/go/muster/v1"
	"muster.example/services/client/go/reasons"
)

const gatewayURI = "spiffe://" + Domain + "/service/gateway/g1"

// CommandAuthority issues signing certificates for the gateway g1.
type CommandAuthority struct {
	*Authority
	// Life is the validity of the certificates.
	Life time.Duration

	issued int
}

// NewCommandAuthority creates a command authority.
func NewCommandAuthority() *CommandAuthority {
	return &CommandAuthority{authority("commands", newKey(), nil, ""), 24 * time.Hour, 0}
}

// Issue certifies an Ed25519 key in PEM.
func (c *CommandAuthority) Issue(publicKeyPEM string) (chain string, expires time.Time, err error) {
	block, _ := pem.Decode([]byte(publicKeyPEM))
	if block == nil || block.Type != "PUBLIC KEY" {
		return "", time.Time{}, errors.New("not a public key")
	}
	public, err := x509.ParsePKIXPublicKey(block.Bytes)
	if _, fits := public.(ed25519.PublicKey); err != nil || !fits {
		return "", time.Time{}, errors.Join(err, errors.New("not an Ed25519 key"))
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: must(rand.Int(rand.Reader, big.NewInt(1<<62))), NotBefore: now.Add(-time.Second), NotAfter: now.Add(c.Life),
		KeyUsage: x509.KeyUsageDigitalSignature, URIs: []*url.URL{must(url.Parse(gatewayURI))},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, c.Certificate, public, c.key)
	if err != nil {
		return "", time.Time{}, err
	}
	c.issued++
	return toPEM(der), template.NotAfter, nil
}

// Check verifies a command as a node does that has pinned this authority, and returns it with its signer's
// URI.
func (c *CommandAuthority) Check(signed *musterv1.SignedCommand) (*musterv1.Command, string, error) {
	block, _ := pem.Decode([]byte(signed.GetCertificateChainPem()))
	if block == nil {
		return nil, "", errors.New("no certificate")
	}
	leaf, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, "", err
	}
	if _, err := leaf.Verify(x509.VerifyOptions{Roots: c.Pool(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}}); err != nil {
		return nil, "", err
	}
	key, fits := leaf.PublicKey.(ed25519.PublicKey)
	if !fits || !ed25519.Verify(key, append([]byte("muster-command-v1\n"), signed.Command...), signed.Signature) {
		return nil, "", errors.New("the signature is invalid")
	}
	command := &musterv1.Command{}
	if err := proto.Unmarshal(signed.Command, command); err != nil {
		return nil, "", err
	}
	return command, leaf.URIs[0].String(), nil
}

// IssueCommandCertificate implements the API, for the gateway.
func (a *Aggregator) IssueCommandCertificate(ctx context.Context, r *musterv1.IssueCommandCertificateRequest) (*musterv1.CommandCertificate, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.recordCall(ctx)
	chain, _, err := a.Commands.Issue(r.PublicKeyPem)
	if err != nil {
		return nil, fault(codes.InvalidArgument, reasons.InvalidKey, err.Error()).Err()
	}
	return &musterv1.CommandCertificate{Uri: gatewayURI, CertificateChainPem: chain, CommandCaPem: a.Commands.PEM()}, nil
}

// CommandCertificates returns how many were issued.
func (a *Aggregator) CommandCertificates() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.Commands.issued
}
