package rudder

import (
	"bytes"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"time"

	"muster.example/gateway/config"
)

// area is a part of the API with its own access rules.
type area int

const (
	areaLocal        area = iota // loopback only
	areaRemoteRun                // the policy server, loopback; extended dialect: with its certificate
	areaSharedFiles              // the allowed networks, loopback
	areaSharedFolder             // the same, always with a certificate
)

// networks are the sources of requests, besides loopback.
type networks struct {
	policyServer []netip.Addr
	allowed      []netip.Prefix
}

func parseNetworks(c *config.Rudder) (n networks, err error) {
	for _, text := range c.PolicyServer {
		address, err := netip.ParseAddr(text)
		if err != nil {
			return n, fmt.Errorf("rudder.policy_server: %w", err)
		}
		n.policyServer = append(n.policyServer, address.Unmap())
	}
	for _, text := range c.Networks {
		network, err := netip.ParsePrefix(text)
		if err != nil {
			return n, fmt.Errorf("rudder.networks: %w", err)
		}
		n.allowed = append(n.allowed, network)
	}
	return n, nil
}

// holds reports whether requests for a place may come from an address.
func (n *networks) holds(where area, remote netip.Addr) bool {
	if remote.IsLoopback() {
		return true
	}
	switch where {
	case areaRemoteRun:
		for _, address := range n.policyServer {
			if address == remote {
				return true
			}
		}
	case areaSharedFiles, areaSharedFolder:
		for _, network := range n.allowed {
			if network.Contains(remote) {
				return true
			}
		}
	}
	return false
}

// admitted reports whether a request is allowed; otherwise it has answered it.
func (s *Server) admitted(w http.ResponseWriter, r *http.Request, where area) bool {
	remote, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || !s.networks.holds(where, remote.Addr().Unmap().WithZone("")) {
		s.refuse(w, r, "requests from this address are not allowed")
		return false
	}
	if where == areaRemoteRun && s.extended() {
		if err := s.fromPolicyServer(r, remote.Addr().Unmap().IsLoopback()); err != nil {
			s.refuse(w, r, "remote run is only allowed for this relay's policy server: "+err.Error())
			return false
		}
		return true
	}
	if where == areaSharedFolder || where != areaLocal && !s.pinning() {
		if r.TLS == nil {
			s.refuse(w, r, "a client certificate is required")
			return false
		}
		if err := verifyChain(r.TLS.PeerCertificates, s.state.Load().clients, x509.ExtKeyUsageClientAuth); err != nil {
			s.refuse(w, r, "a client certificate is required: "+err.Error())
			return false
		}
	}
	return true
}

// refuse answers a stranger. It does not read the body: the listener closes the connection.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, why string) {
	s.log.Warn("request refused", "remote", r.RemoteAddr, "path", r.URL.Path, "reason", why)
	answer(w, http.StatusForbidden, "FORBIDDEN: "+why)
}

// fromPolicyServer checks that a request has the policy server's certificate. A local request may have this relay's
// own: root is its own policy server.
func (s *Server) fromPolicyServer(r *http.Request, local bool) error {
	if r.TLS == nil || len(r.TLS.PeerCertificates) == 0 {
		return errors.New("no client certificate")
	}
	known, leaf := s.state.Load(), r.TLS.PeerCertificates[0]
	if now := time.Now(); now.Before(leaf.NotBefore) || now.After(leaf.NotAfter) {
		return errors.New("the certificate is not valid now")
	}
	if local && bytes.Equal(leaf.Raw, known.own.Certificate[0]) {
		return nil
	}
	if s.pinning() {
		for _, pinned := range known.upstream {
			if leaf.Equal(pinned) {
				return nil
			}
		}
		return errors.New("it is the certificate of another node")
	}
	if err := verifyChain(r.TLS.PeerCertificates, known.clients, x509.ExtKeyUsageClientAuth); err != nil {
		return err
	}
	return leaf.VerifyHostname(s.config.UpstreamHost)
}
