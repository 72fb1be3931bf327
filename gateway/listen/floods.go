package listen

import (
	"crypto/sha256"
	"crypto/tls"
	"fmt"
	"net"
	"sync"
	"time"

	"muster.example/gateway/limits"
)

// Floods counts the frames of each source of connections of HTTP/2, and refuses connections of a source for a while after
// it has sent too many. All listeners of a gateway share one. A source is the identity of a certificate, or the network of
// a client without one. For a certificate that many machines may have, it is the certificate with the network. Safe for
// concurrent use.
type Floods struct {
	mu      sync.Mutex
	sources map[string]*source
}

// NewFloods returns one without sources.
func NewFloods() *Floods { return &Floods{sources: map[string]*source{}} }

// source is what has connections, or had some and is refused.
type source struct {
	key, name   string
	connections int
	refused     int // pauses that have not ended

	mu     sync.Mutex
	begun  time.Time
	frames int // in the second since begun
}

// count counts frames, and reports whether they are within the limit.
func (s *source) count(cost int, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Sub(s.begun) >= time.Second {
		s.begun, s.frames = now, 0
	}
	s.frames += cost
	return s.frames <= limits.FramesOfSource
}

// join adds a connection to a source, unless the source is refused. The key is unique, the name is for people.
func (f *Floods) join(key, name string) (*source, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.sources[key]
	if s == nil {
		s = &source{key: key, name: name}
		f.sources[key] = s
	}
	if s.refused > 0 {
		return nil, &RefusedPeer{Subject: name, Err: fmt.Errorf("it sent too many frames within the last %v", limits.FloodPause)}
	}
	s.connections++
	return s, nil
}

// leave removes a connection.
func (f *Floods) leave(s *source) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s.connections--
	f.forget(s)
}

// refuse refuses new connections of a source for a while.
func (f *Floods) refuse(s *source) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s.refused++
	time.AfterFunc(limits.FloodPause, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		s.refused--
		f.forget(s)
	})
}

// forget removes a source that is not in use. The lock is held.
func (f *Floods) forget(s *source) {
	if s.connections == 0 && s.refused == 0 {
		delete(f.sources, s.key)
	}
}

// sourceOf returns the key and the name of the source of a connection. A certificate that was not verified is none.
func sourceOf(state *tls.ConnectionState, remote net.Addr, shared bool) (key, name string) {
	network := networkOf(remote).String()
	if len(state.VerifiedChains) == 0 {
		return network, network
	}
	certificate := state.PeerCertificates[0]
	if shared {
		return fmt.Sprintf("%x %s", sha256.Sum256(certificate.Raw), network), Describe(certificate) + " at " + network
	}
	return identityOf(state), Describe(certificate)
}
