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

// state is what the files about nodes and peers say. It never changes: a reload makes a new one, and what is
// under way keeps that with which it began.
type state struct {
	*tree
	own          *tls.Certificate               // the listener's
	certificates map[string][]*x509.Certificate // of nodes in the list
	clients      *x509.CertPool                 // who vouches for clients
	upstream     []*x509.Certificate
	authorities  *x509.CertPool // of other relays, with cert_validation; nil: the system's
}

// loadState reads all files; nothing of it counts if one is wrong.
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

// readCertificates reads what is concatenated in a file. A file that is not there has none; a block that cannot
// be read is skipped, so that one node does not cost all others theirs; a file without any block is wrong.
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
				return nil, fmt.Errorf("%s: %s holds no certificate in PEM", field, path)
			}
			return all, nil
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if block.Type != "CERTIFICATE" || err != nil {
			log.Warn("a certificate cannot be read and is skipped", "field", field, "file", path, "block", blocks+1, "error", err)
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

// byNode sorts certificates by the node that each names; several are kept of a node whose key changes.
func byNode(t *tree, all []*x509.Certificate, log *slog.Logger) map[string][]*x509.Certificate {
	found := map[string][]*x509.Certificate{}
	for _, certificate := range all {
		id := nodeOf(certificate)
		if !t.knows(id) {
			log.Warn("a certificate names no node of the list and is skipped", "node", id, "serial", certificate.SerialNumber.String())
			continue
		}
		found[id] = append(found[id], certificate)
	}
	return found
}

// readID gives this relay's own id.
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
		return "", fmt.Errorf("rudder.node_id: %q is no id; allowed: letters, digits, '-', '_' and '.'", id)
	}
	return id, nil
}
