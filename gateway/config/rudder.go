package config

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"time"
)

// Rudder is what the file says of the listener for Rudder's relay API; docs/relay.md explains it.
type Rudder struct {
	Listen                                 string
	Dialect                                string
	CertificateFile, KeyFile, ClientCAFile string
	TLSMinimum                             string
	PeerAuthentication                     string
	PolicyServer, Networks                 []string
	NodeID, NodeIDFile                     string
	NodesListFile, NodesCertsFile          string
	HTTPSPort                              int
	CAFile                                 string
	UpstreamHost, UpstreamCertificateFile  string
	RemoteRun                              bool
	RemoteRunCommand                       []string
	RemoteRuns                             int
	RemoteRunTime, BranchSilence           time.Duration
	SharedFiles                            string
	SharedFilesSweep                       time.Duration
	MaxBodySize                            int64
	SharedFolder                           string
}

func defaultRudder() Rudder {
	return Rudder{
		Dialect: "strict", TLSMinimum: "1.3", PeerAuthentication: "cert_pinning",
		ClientCAFile: "/var/rudder/lib/ssl/nodescerts.pem", NodeIDFile: "/opt/rudder/etc/uuid.hive",
		NodesListFile: "/var/rudder/lib/relay/nodeslist.json", NodesCertsFile: "/var/rudder/lib/ssl/nodescerts.pem",
		HTTPSPort: 443, UpstreamCertificateFile: "/var/rudder/lib/ssl/policy_server.pem",
		RemoteRun: true, RemoteRunCommand: []string{"sudo", "/opt/rudder/bin/rudder", "remote", "run"},
		RemoteRuns: 32, RemoteRunTime: time.Hour, BranchSilence: 5 * time.Minute,
		SharedFiles: "/var/rudder/shared-files", SharedFilesSweep: 10 * time.Minute, MaxBodySize: 50 << 20,
		SharedFolder: "/var/rudder/configuration-repository/shared-files",
	}
}

func (r *Rudder) bind(f *fields) {
	file := func(name string, value *string, comment string) {
		f.text("rudder."+name, value, comment, "empty, or an absolute path",
			func(given string) bool { return given == "" || filepath.IsAbs(given) })
	}
	f.text("rudder.listen", &r.Listen, "Where Rudder's relay API is served, over HTTPS (docs/relay.md). Empty: it is not.",
		"empty, or host:port", func(given string) bool { return given == "" || isAddress(given) })
	f.oneOf("rudder.dialect", &r.Dialect, "How it is answered: strict is what released relays of Rudder do.", "strict")
	file("certificate_file", &r.CertificateFile, "The listener's certificate, PEM.")
	file("key_file", &r.KeyFile, "Its key, PEM.")
	file("client_ca_file", &r.ClientCAFile, "Who may sign certificates of clients, or these certificates themselves, PEM.")
	f.oneOf("rudder.tls_minimum", &r.TLSMinimum, "The oldest TLS that clients may speak.", "1.2", "1.3")
	f.oneOf("rudder.peer_authentication", &r.PeerAuthentication, "How relays know each other: by pinned certificates, or by "+
		"authorities. cert_validation asks clients for a certificate everywhere.", "cert_pinning", "cert_validation")
	f.list("rudder.policy_server", &r.PolicyServer, "Addresses that remote run is accepted from, besides loopback: those of this "+
		"relay's own policy server.", "an IP address", isIP)
	f.list("rudder.networks", &r.Networks, "Networks that shared files and the shared folder are served to, besides loopback.",
		"a network such as 192.0.2.0/24", isNetwork)
	f.text("rudder.node_id", &r.NodeID, "This relay's id; root: the root server. Empty: it stands in node_id_file.", "text", nil)
	file("node_id_file", &r.NodeIDFile, "Where this relay's id stands.")
	file("nodes_list_file", &r.NodesListFile, "nodeslist.json: the nodes below this relay. A file that is missing means none.")
	file("nodes_certs_file", &r.NodesCertsFile, "Their certificates, PEM: relays below are known by them.")
	f.integer("rudder.https_port", &r.HTTPSPort, "The port of all other relays.", 1, 65535)
	file("ca_file", &r.CAFile, "With cert_validation: authorities of other relays, PEM. Empty: those of the system.")
	f.text("rudder.upstream_host", &r.UpstreamHost, "This relay's own policy server. Root has none.", "text", nil)
	file("upstream_certificate_file", &r.UpstreamCertificateFile, "With cert_pinning: the policy server's certificate, PEM.")
	r.bindWork(f, file)
}

// bindWork gives the fields about what the listener does.
func (r *Rudder) bindWork(f *fields, file func(name string, value *string, comment string)) {
	f.boolean("rudder.remote_run", &r.RemoteRun, "Whether remote run is served.")
	f.list("rudder.remote_run_command", &r.RemoteRunCommand, "The program that reaches nodes without an agent of Muster, and its "+
		"first arguments. It gets `-D conditions`, `--` and the host names. No shell is involved.", "an argument",
		func(given string) bool { return given != "" })
	f.integer("rudder.remote_runs", &r.RemoteRuns, "Remote runs at a time; more wait up to a minute, then get 503.", 1, 10_000)
	f.duration("rudder.remote_run_time", &r.RemoteRunTime, "How long a remote run may take; what runs then is ended.",
		time.Second, 7*24*time.Hour)
	f.duration("rudder.branch_silence", &r.BranchSilence, "How long a relay below may say nothing before a remote run goes on "+
		"without it.", time.Second, 24*time.Hour)
	file("shared_files", &r.SharedFiles, "Where shared files are kept.")
	f.duration("rudder.shared_files_sweep", &r.SharedFilesSweep, "How often expired ones are removed.", time.Second, 24*time.Hour)
	f.byteSize("rudder.max_body_size", &r.MaxBodySize, "The largest upload of a shared file, with its header; more is 413.", 1<<50)
	file("shared_folder", &r.SharedFolder, "The folder that all nodes may read.")
}

// check finds what the listener needs and does not have.
func (r *Rudder) check(path string) (all []error) {
	if r.Listen == "" {
		return nil
	}
	for _, needed := range []struct{ name, value string }{
		{"certificate_file", r.CertificateFile}, {"key_file", r.KeyFile}, {"nodes_list_file", r.NodesListFile},
		{"shared_files", r.SharedFiles}, {"shared_folder", r.SharedFolder},
	} {
		if needed.value == "" {
			all = append(all, fmt.Errorf("%s: rudder.%s: has no value, but rudder.listen is set", path, needed.name))
		}
	}
	if r.NodeID == "" && r.NodeIDFile == "" {
		all = append(all, fmt.Errorf("%s: rudder.node_id: neither it nor rudder.node_id_file has a value", path))
	}
	if r.RemoteRun && len(r.RemoteRunCommand) == 0 {
		all = append(all, fmt.Errorf("%s: rudder.remote_run_command: at least the program is needed", path))
	}
	return all
}

func isIP(text string) bool {
	_, err := netip.ParseAddr(text)
	return err == nil
}

func isNetwork(text string) bool {
	_, err := netip.ParsePrefix(text)
	return err == nil
}
