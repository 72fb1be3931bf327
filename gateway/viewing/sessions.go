package viewing

import (
	"crypto/rand"
	"crypto/x509"
	"net/http"
	"strings"
	"sync"
	"time"

	"muster.example/gateway/limits"
	"muster.example/services/client/go/peer"
)

const (
	cookieName = "__Host-muster"
)

// caller is the identity of a link or a session.
type caller struct {
	id          peer.Identity
	certificate *x509.Certificate
	until       time.Time
}

// Sessions holds the issued links and the browsers that opened one. They are in memory only: after a restart users sign
// in again. Safe for concurrent use.
type Sessions struct {
	address  string
	now      func() time.Time
	mu       sync.Mutex
	links    map[string]caller
	sessions map[string]caller
}

// NewSessions returns an empty set. Browsers reach the status listener at the address, "https://host:port".
func NewSessions(address string) *Sessions {
	return &Sessions{address: strings.TrimRight(address, "/"), now: time.Now, links: map[string]caller{}, sessions: map[string]caller{}}
}

// New implements rest.Links: Open accepts the URL's token once, within linkLife.
func (s *Sessions) New(certificate *x509.Certificate, id peer.Identity) (address string, life time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	token := s.store(s.links, caller{id, certificate, s.now().Add(limits.LinkTime)})
	return s.address + "/login?token=" + token, limits.LinkTime
}

// Open creates a session for a link's token; it returns "" if the token is not valid.
func (s *Sessions) Open(token string) (session string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	link, ok := s.links[token]
	delete(s.links, token)
	if !ok || s.now().After(link.until) {
		return ""
	}
	until := s.now().Add(limits.SessionTime)
	if end := link.certificate.NotAfter; end.Before(until) {
		until = end
	}
	return s.store(s.sessions, caller{link.id, link.certificate, until})
}

// of returns the identity of a request's session, or nil.
func (s *Sessions) of(r *http.Request) *caller {
	cookie, err := r.Cookie(cookieName)
	if err != nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	found, ok := s.sessions[cookie.Value]
	if !ok || s.now().After(found.until) {
		return nil
	}
	return &found
}

// end deletes the request's session.
func (s *Sessions) end(r *http.Request) {
	if cookie, err := r.Cookie(cookieName); err == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.sessions, cookie.Value)
	}
}

// Count returns how many browsers are signed in.
func (s *Sessions) Count() (count int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, session := range s.sessions {
		if s.now().Before(session.until) {
			count++
		}
	}
	return count
}

// store stores a party under a random name. To make space it drops expired entries, then those that expire first. The
// lock is held.
func (s *Sessions) store(all map[string]caller, p caller) string {
	first := ""
	for name, other := range all {
		if s.now().After(other.until) {
			delete(all, name)
		} else if first == "" || other.until.Before(all[first].until) {
			first = name
		}
	}
	if len(all) >= limits.Sessions {
		delete(all, first)
	}
	name := rand.Text()
	all[name] = p
	return name
}
