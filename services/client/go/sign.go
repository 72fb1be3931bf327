package muster

import (
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"strings"

	musterv1 "muster.example/proto/gen/go/muster/v1"
	"muster.example/services/client/go/peer"
)

// signer signs results with the key of a certificate; without one it does not sign.
type signer func() (*tls.Certificate, error)

// result signs as results.proto, message Signature, defines. Only nodes and run credentials sign.
func (s signer) result(d *Delivery, sum summary) (*musterv1.Signature, error) {
	if s == nil || d.Forwarded {
		return nil, nil
	}
	certificate, err := s()
	if err != nil {
		return nil, err
	}
	id, err := peer.FromCertificate(certificate.Leaf)
	if err != nil || (id.Kind != peer.Node && id.Kind != peer.PluginNode && id.Kind != peer.AnyNode) {
		return nil, err
	}
	key, ok := certificate.PrivateKey.(*ecdsa.PrivateKey)
	if !ok {
		return nil, nil
	}
	kind := "result"
	if d.IsError {
		kind = "error"
	}
	text := fmt.Sprintf("muster-result-v1\n%s\n%s\n%s\n%d\n%d\n%x\n%s\n%d\n%s\n%d\n%s\n",
		d.Key.Run, d.Key.Plugin, d.Key.Node, d.Attempt, sum.size, sum.sha256, kind,
		len(d.MediaType), d.MediaType, len(d.FileName), d.FileName)
	digest := sha256.Sum256([]byte(text))
	value, err := ecdsa.SignASN1(rand.Reader, key, digest[:])
	if err != nil {
		return nil, fmt.Errorf("cannot sign the result: %w", err)
	}
	var chain strings.Builder
	for _, der := range certificate.Certificate {
		chain.Write(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	}
	return &musterv1.Signature{Value: value, CertificateChainPem: chain.String()}, nil
}
