// Package peer parses identities, the one URI in a certificate of the fleet, and verifies that a server is
// the expected service.
package peer

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// Kind is the kind of an identity.
type Kind int

// The kinds of identities.
const (
	Service    Kind = iota + 1 // spiffe://<fleet>/service/ROLE/NAME
	User                       // spiffe://<fleet>/user/U
	Node                       // spiffe://<fleet>/node/N
	AnyNode                    // spiffe://<run>.<fleet>/plugin/P: delivers for any planned node of P
	PluginNode                 // spiffe://<run>.<fleet>/plugin/P/node/N
	Listener                   // spiffe://<run>.<fleet>/listener: a run's listener for legacy clients
	Viewer                     // spiffe://<run>.<fleet>/viewer: may see the status of the run
)

// Identity is a parsed URI. Only Parse creates one, so every field is valid.
type Identity struct {
	URI   string
	Kind  Kind
	Fleet string
	Run   string // of AnyNode, PluginNode, Listener and Viewer
	Role  string // of Service
	Name  string // of Service, User and Node
	// Plugin and PlanNode are of AnyNode and PluginNode; PlanNode may be "global".
	Plugin   string
	PlanNode string
}

const maxName = 253

// ValidName reports whether a text may name a plugin, a node, a user or a service: letters, digits, "_", "-" and, except
// at the beginning, ".".
func ValidName(name string) bool {
	return len(name) > 0 && len(name) <= maxName && name[0] != '.' && consistsOf(name, func(c byte) bool {
		return c >= 'A' && c <= 'Z' || isHostByte(c) || c == '_'
	})
}

// validHost accepts lower-case host names.
func validHost(host string) bool {
	return len(host) > 0 && len(host) <= maxName && isAlphanumeric(host[0]) && isAlphanumeric(host[len(host)-1]) &&
		consistsOf(host, isHostByte)
}

// ValidRun reports whether a text may be a run's id.
func ValidRun(run string) bool {
	return len(run) == 16 && consistsOf(run, func(c byte) bool { return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' })
}

func isAlphanumeric(c byte) bool { return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' }

func isHostByte(c byte) bool { return isAlphanumeric(c) || c == '.' || c == '-' }

// consistsOf is used instead of regular expressions, because each request parses several identities.
func consistsOf(text string, allowed func(byte) bool) bool {
	for i := range len(text) {
		if !allowed(text[i]) {
			return false
		}
	}
	return true
}

// Parse parses a URI. It is strict: each identity has exactly one spelling.
func Parse(uri string) (Identity, error) {
	refuse := func() (Identity, error) {
		return Identity{}, fmt.Errorf("%q is not an identity of a fleet", uri)
	}
	rest, ok := strings.CutPrefix(uri, "spiffe://")
	if !ok {
		return refuse()
	}
	host, path, ok := strings.Cut(rest, "/")
	if !ok || !validHost(host) {
		return refuse()
	}
	id := Identity{URI: uri, Fleet: host}
	parts := strings.Split(path, "/")
	var names []string
	switch {
	case len(parts) == 3 && parts[0] == "service":
		id.Kind, id.Role, id.Name, names = Service, parts[1], parts[2], parts[1:]
	case len(parts) == 2 && parts[0] == "user":
		id.Kind, id.Name, names = User, parts[1], parts[1:]
	case len(parts) == 2 && parts[0] == "node" && parts[1] != "global":
		id.Kind, id.Name, names = Node, parts[1], parts[1:]
	case len(parts) == 2 && parts[0] == "plugin":
		id.Kind, id.Plugin, names = AnyNode, parts[1], parts[1:]
	case len(parts) == 4 && parts[0] == "plugin" && parts[2] == "node":
		id.Kind, id.Plugin, id.PlanNode = PluginNode, parts[1], parts[3]
		names = []string{parts[1], parts[3]}
	case len(parts) == 1 && parts[0] == "listener":
		id.Kind = Listener
	case len(parts) == 1 && parts[0] == "viewer":
		id.Kind = Viewer
	default:
		return refuse()
	}
	for _, name := range names {
		if !ValidName(name) {
			return refuse()
		}
	}
	if id.Kind >= AnyNode {
		id.Run, id.Fleet, ok = strings.Cut(host, ".")
		if !ok || !ValidRun(id.Run) || !validHost(id.Fleet) {
			return refuse()
		}
	}
	return id, nil
}

// FromCertificate returns the identity in a certificate. It does not verify the certificate: verify it first.
func FromCertificate(certificate *x509.Certificate) (Identity, error) {
	if len(certificate.URIs) != 1 {
		return Identity{}, fmt.Errorf("the certificate has %d URIs instead of one", len(certificate.URIs))
	}
	return Parse(text(certificate.URIs[0]))
}

// text does not escape or unescape: Parse accepts one spelling only.
func text(uri *url.URL) string {
	if uri.Opaque != "" || uri.RawPath != "" {
		return ""
	}
	return uri.String()
}

// DeliversFor checks whether an identity may deliver the result of a pair of a run.
func (id Identity) DeliversFor(run, plugin, node string) error {
	switch id.Kind {
	case PluginNode:
		if id.Run == run && id.Plugin == plugin && id.PlanNode == node {
			return nil
		}
	case AnyNode:
		if id.Run == run && id.Plugin == plugin {
			return nil
		}
	case Node:
		if id.Name == node {
			return nil
		}
	}
	return errors.New("the certificate is for " + id.URI)
}

// IsShared reports whether several clients may have this credential: that of a viewer of a run, or of any node of a plugin.
func IsShared(certificate *x509.Certificate) bool {
	id, err := FromCertificate(certificate)
	return err == nil && (id.Kind == AnyNode || id.Kind == Viewer)
}
