package fleet

import (
	"context"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"

	"muster.example/services/client/go/peer"
)

// ErrRevoked ends the requests of a revoked identity.
var ErrRevoked = errors.New("the certificate is revoked")

// Revoked holds the revoked identities and certificates, and ends their requests. Safe for concurrent use.
type Revoked struct {
	mu       sync.Mutex
	subjects map[string]bool
	active   map[*request]bool
}

type request struct {
	names  [2]string
	cancel context.CancelCauseFunc
}

// NewRevoked returns an empty set.
func NewRevoked() *Revoked {
	return &Revoked{subjects: map[string]bool{}, active: map[*request]bool{}}
}

// names returns the two subjects under which a certificate may be revoked: its identity, and itself.
func names(certificate *x509.Certificate, id peer.Identity) [2]string {
	return [2]string{id.URI, certificateName(certificate)}
}

// certificateName returns "<issuer key id>:<serial>".
func certificateName(certificate *x509.Certificate) string {
	return fmt.Sprintf("%x:%s", certificate.AuthorityKeyId, hex.EncodeToString(certificate.SerialNumber.Bytes()))
}

// Add revokes a subject: "spiffe://..." or "<issuer key id>:<serial>".
func (r *Revoked) Add(subject string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.subjects[subject] = true
	r.end()
}

// Replace replaces all revocations: after a snapshot.
func (r *Revoked) Replace(subjects []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.subjects = make(map[string]bool, len(subjects))
	for _, subject := range subjects {
		r.subjects[subject] = true
	}
	r.end()
}

// end cancels the requests of revoked identities.
func (r *Revoked) end() {
	for active := range r.active {
		if r.subjects[active.names[0]] || r.subjects[active.names[1]] {
			active.cancel(ErrRevoked)
		}
	}
}

// Begin admits a request, or refuses it with ErrRevoked. The context ends when the identity is revoked; the caller
// calls the function when the request ends.
func (r *Revoked) Begin(ctx context.Context, certificate *x509.Certificate, id peer.Identity) (context.Context, func(), error) {
	ctx, cancel := context.WithCancelCause(ctx)
	active := &request{names: names(certificate, id), cancel: cancel}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.subjects[active.names[0]] || r.subjects[active.names[1]] {
		cancel(ErrRevoked)
		return ctx, func() {}, ErrRevoked
	}
	r.active[active] = true
	return ctx, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.active, active)
		cancel(nil)
	}, nil
}
