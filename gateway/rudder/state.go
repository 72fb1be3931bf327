package rudder

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strings"

	"muster.example/gateway/config"
)

// state is the content of the files about nodes and peers. It is immutable: a reload creates a new one, and active
// requests keep theirs.
type state struct {
	*tree
	own          *tls.Certificate               // the listener's
	certificates map[string][]*x509.Certificate // of nodes in the list
	clients      *x509.CertPool                 // CAs of clients
	upstream     []*x509.Certificate
	authorities  *x509.CertPool // of other relays, with cert_validation; nil: the system's
}

// loadState reads all files; it fails if one is invalid.
func loadState(c *config.Rudder, self string, log *slog.Logger) (*state, error) {
	s := &state{clients: x509.NewCertPool()}
	own, err := tls.LoadX509KeyPair(c.CertificateFile, c.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("rudder.certificate_file, rudder.key_file: %w", err)
	}
	s.own = &own
	if s.tree, err = loadTree(self, c.NodesListFile); err != nil {
		return nil, err
	}
	nodes, err := readCertificates("rudder.nodes_certs_file", c.NodesCertsFile, log)
	if err != nil {
		return nil, err
	}
	s.certificates = byNode(s.tree, nodes, log)
	clients, err := readCertificates("rudder.client_ca_file", c.ClientCAFile, log)
	if err != nil {
		return nil, err
	}
	for _, certificate := range clients {
		s.clients.AddCert(certificate)
	}
	if c.PeerAuthentication == "cert_pinning" {
		s.upstream, err = readCertificates("rudder.upstream_certificate_file", c.UpstreamCertificateFile, log)
		return s, err
	}
	if c.CAFile == "" {
		return s, nil
	}
	authorities, err := readCertificates("rudder.ca_file", c.CAFile, log)
	s.authorities = x509.NewCertPool()
	for _, certificate := range authorities {
		s.authorities.AddCert(certificate)
	}
	return s, err
}

// readCertificates reads concatenated certificates. A missing file has none; an unreadable block is skipped, so that it
// does not affect other nodes; a file without any block is invalid.
func readCertificates(field, path string, log *slog.Logger) (all []*x509.Certificate, err error) {
	if path == "" {
		return nil, nil
	}
	rest, err := readBounded(path)
	if errors.Is(err, fs.ErrNotExist) {
		log.Info("no certificates: the file is missing", "field", field, "file", path)
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", field, err)
	}
	empty := strings.TrimSpace(string(rest)) == ""
	for blocks := 0; ; blocks++ {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			if blocks == 0 && !empty {
				return nil, fmt.Errorf("%s: %s has no PEM certificate", field, path)
			}
			return all, nil
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if block.Type != "CERTIFICATE" || err != nil {
			log.Warn("invalid certificate skipped", "field", field, "file", path, "block", blocks+1, "error", err)
			continue
		}
		all = append(all, certificate)
	}
}

// userID is the attribute of a certificate's subject that names its node.
const userID = "0.9.2342.19200300.100.1.1"

func nodeOf(certificate *x509.Certificate) string {
	for _, attribute := range certificate.Subject.Names {
		if id, isText := attribute.Value.(string); isText && attribute.Type.String() == userID {
			return id
		}
	}
	return ""
}

// byNode groups certificates by the node that they name; a node whose key changes has several.
func byNode(t *tree, all []*x509.Certificate, log *slog.Logger) map[string][]*x509.Certificate {
	found := map[string][]*x509.Certificate{}
	for _, certificate := range all {
		id := nodeOf(certificate)
		if !t.knows(id) {
			log.Warn("certificate of an unknown node skipped", "node", id, "serial", certificate.SerialNumber.String())
			continue
		}
		found[id] = append(found[id], certificate)
	}
	return found
}

// readID returns this relay's own id.
func readID(c *config.Rudder) (string, error) {
	id := c.NodeID
	if id == "" {
		content, err := os.ReadFile(c.NodeIDFile)
		if err != nil {
			return "", fmt.Errorf("rudder.node_id_file: %w", err)
		}
		id = strings.TrimSpace(string(content))
	}
	if !isName(id) {
		return "", fmt.Errorf("rudder.node_id: %q is not a valid id; allowed: letters, digits, '-', '_' and '.'", id)
	}
	return id, nil
}
