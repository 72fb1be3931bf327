package main

import (
	"crypto/rand"
	"net/http"
	"sync"
	"time"
)

const (
	cookie      = "scan"
	sessionLife = 12 * time.Hour
	maxSessions = 10_000
)

// sessions maps sessions to their viewers, in memory only. Safe for concurrent use.
type sessions struct {
	mu      sync.Mutex
	viewers map[string]entry
}

type entry struct {
	viewer *viewer
	until  time.Time
}

func newSessions() *sessions { return &sessions{viewers: map[string]entry{}} }

// begin creates a session; the cookie holds only its random name.
func (s *sessions) begin(w http.ResponseWriter, v *viewer) {
	name := rand.Text()
	s.mu.Lock()
	s.sweep()
	s.viewers[name] = entry{v, time.Now().Add(sessionLife)}
	s.mu.Unlock()
	http.SetCookie(w, &http.Cookie{Name: cookie, Value: name, Path: "/scans", MaxAge: int(sessionLife.Seconds()),
		HttpOnly: true, Secure: true, SameSite: http.SameSiteStrictMode})
}

// sweep drops expired sessions, and the one that expires first if there are too many. The lock is held.
func (s *sessions) sweep() {
	first := ""
	for name, e := range s.viewers {
		if time.Now().After(e.until) {
			s.drop(name)
		} else if first == "" || e.until.Before(s.viewers[first].until) {
			first = name
		}
	}
	if len(s.viewers) >= maxSessions {
		s.drop(first)
	}
}

func (s *sessions) drop(name string) {
	s.viewers[name].viewer.close()
	delete(s.viewers, name)
}

// of returns the viewer of the request's session, or nil.
func (s *sessions) of(r *http.Request) *viewer {
	c, err := r.Cookie(cookie)
	if err != nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.viewers[c.Value]
	if !ok || time.Now().After(e.until) {
		return nil
	}
	return e.viewer
}

// end drops the session with its key.
func (s *sessions) end(w http.ResponseWriter, r *http.Request) {
	if c, err := r.Cookie(cookie); err == nil {
		s.mu.Lock()
		if _, ok := s.viewers[c.Value]; ok {
			s.drop(c.Value)
		}
		s.mu.Unlock()
	}
	http.SetCookie(w, &http.Cookie{Name: cookie, Path: "/scans", MaxAge: -1})
}
