package config

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"time"

	"muster.example/gateway/limits"
)

// Rudder configures the listener for Rudder's relay API; docs/rudder.md explains it.
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
	RemoteRunCommands                      int
	RemoteRunTime, BranchSilence           time.Duration
	ClientSilence                          time.Duration
	Streams                                bool
	SharedFiles                            string
	SharedFilesSweep                       time.Duration
	SharedFilesQuota                       int64
	SharedFilesNodes                       string
	SpoolTime                              time.Duration
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
		RemoteRuns: limits.RemoteRuns, RemoteRunCommands: 16, Streams: true,
		RemoteRunTime: time.Hour, BranchSilence: 5 * time.Minute, ClientSilence: time.Minute,
		SharedFiles: "/var/rudder/shared-files", SharedFilesSweep: 10 * time.Minute,
		SharedFilesNodes: "/var/rudder/shared-files-nodes", SharedFilesQuota: 10 << 30, SpoolTime: 72 * time.Hour, MaxBodySize: 50 << 20,
		SharedFolder: "/var/rudder/configuration-repository/shared-files",
	}
}

func (r *Rudder) bind(f *fields) {
	file := func(name string, value *string, comment string) {
		f.text("rudder."+name, value, comment, "empty, or an absolute path",
			func(given string) bool { return given == "" || filepath.IsAbs(given) })
	}
	f.text("rudder.listen", &r.Listen, "Address of Rudder's relay API, over HTTPS (docs/rudder.md). Empty: disabled.",
		"empty, or host:port", func(given string) bool { return given == "" || isAddress(given) })
	f.oneOf("rudder.dialect", &r.Dialect, "Dialect of the API: strict behaves as released relays of Rudder, extended is "+
		"the first design of the API, with records for each node.", "strict", "extended")
	file("certificate_file", &r.CertificateFile, "The listener's certificate, PEM.")
	file("key_file", &r.KeyFile, "Its key, PEM.")
	file("client_ca_file", &r.ClientCAFile, "CAs of clients, or the clients' certificates themselves, PEM.")
	f.oneOf("rudder.tls_minimum", &r.TLSMinimum, "The oldest TLS version that clients may use.", "1.2", "1.3")
	f.oneOf("rudder.peer_authentication", &r.PeerAuthentication, "How relays authenticate each other: by pinned certificates, or by "+
		"CAs. cert_validation requests a client certificate on all paths.", "cert_pinning", "cert_validation")
	f.list("rudder.policy_server", &r.PolicyServer, "Addresses that may request remote runs, besides loopback: those of this "+
		"relay's own policy server.", "an IP address", isIP)
	f.list("rudder.networks", &r.Networks, "Networks that may use shared files and the shared folder, besides loopback.",
		"a network such as 192.0.2.0/24", isNetwork)
	f.text("rudder.node_id", &r.NodeID, "This relay's id; root: the root server. Empty: it is in node_id_file.", "text", nil)
	file("node_id_file", &r.NodeIDFile, "The file with this relay's id.")
	file("nodes_list_file", &r.NodesListFile, "nodeslist.json: the nodes of this relay and its descendants. A missing file means none.")
	file("nodes_certs_file", &r.NodesCertsFile, "Their certificates, PEM. They authenticate child relays.")
	f.integer("rudder.https_port", &r.HTTPSPort, "The port of all other relays.", 1, 65535)
	file("ca_file", &r.CAFile, "With cert_validation: CAs of other relays, PEM. Empty: those of the system.")
	f.text("rudder.upstream_host", &r.UpstreamHost, "This relay's own policy server. The root server has none.", "text", nil)
	file("upstream_certificate_file", &r.UpstreamCertificateFile, "With cert_pinning: the policy server's certificate, PEM.")
	r.bindWork(f, file)
}

// bindWork adds the fields about the work of the listener.
func (r *Rudder) bindWork(f *fields, file func(name string, value *string, comment string)) {
	f.boolean("rudder.remote_run", &r.RemoteRun, "Enables remote run.")
	f.list("rudder.remote_run_command", &r.RemoteRunCommand, "The program that reaches nodes without Muster's agent, and its "+
		"first arguments. It gets `-D conditions`, `--` and the host names. No shell is involved.", "an argument",
		func(given string) bool { return given != "" })
	f.integer("rudder.remote_runs", &r.RemoteRuns, "Maximum of simultaneous remote runs; more wait up to a minute, then get 503.", 1, 10_000)
	f.integer("rudder.remote_run_commands", &r.RemoteRunCommands, "With the extended dialect: maximum of simultaneous commands of "+
		"one remote run; it has one for each node.", 1, 1000)
	f.boolean("rudder.streams", &r.Streams, "Reaches nodes that are attached to a Muster relay, by their id or their host "+
		"name, over their streams instead (relay_targets). Their own policies define what they run.")
	f.duration("rudder.remote_run_time", &r.RemoteRunTime, "Time limit of a remote run; then its commands are ended.",
		time.Second, 7*24*time.Hour)
	f.duration("rudder.branch_silence", &r.BranchSilence, "How long a child relay may send nothing before a remote run continues "+
		"without it.", time.Second, 24*time.Hour)
	f.duration("rudder.client_silence", &r.ClientSilence, "How long a client may neither send nor receive anything before it is disconnected.",
		time.Second, time.Hour)
	file("shared_files", &r.SharedFiles, "Folder of shared files, with the strict dialect.")
	file("shared_files_nodes", &r.SharedFilesNodes, "The same with the extended dialect.")
	f.byteSize("rudder.shared_files_quota", &r.SharedFilesQuota, "Space for shared files, including those in transit to the "+
		"policy server; an upload that does not fit gets 507, or 413 if it never would. One source may use half. 0: no limit.", 1<<60)
	f.duration("rudder.spool_time", &r.SpoolTime, "With the extended dialect: how long the relay tries to forward an upload for a node elsewhere, "+
		"unless it expires before.", time.Second, 365*24*time.Hour)
	f.duration("rudder.shared_files_sweep", &r.SharedFilesSweep, "How often expired ones are removed.", time.Second, 24*time.Hour)
	f.byteSize("rudder.max_body_size", &r.MaxBodySize, "The largest upload of a shared file, with its header; a larger one gets 413.", 1<<50)
	file("shared_folder", &r.SharedFolder, "A folder that all nodes may read.")
}

// check finds required fields without a value.
func (r *Rudder) check(path string) (all []error) {
	if r.Listen == "" {
		return nil
	}
	for _, needed := range []named{
		{"certificate_file", r.CertificateFile}, {"key_file", r.KeyFile}, {"nodes_list_file", r.NodesListFile},
		{"shared_folder", r.SharedFolder}, r.files(),
	} {
		if needed.value == "" {
			all = append(all, fmt.Errorf("%s: rudder.%s: has no value, but rudder.listen is set", path, needed.name))
		}
	}
	if r.NodeID == "" && r.NodeIDFile == "" {
		all = append(all, fmt.Errorf("%s: rudder.node_id: neither it nor rudder.node_id_file has a value", path))
	}
	if r.RemoteRun && len(r.RemoteRunCommand) == 0 {
		all = append(all, fmt.Errorf("%s: rudder.remote_run_command: at least the program is required", path))
	}
	return all
}

// named is a field with its value.
type named struct{ name, value string }

// files returns the field with the dialect's folder of shared files.
func (r *Rudder) files() named {
	if r.Dialect == "extended" {
		return named{"shared_files_nodes", r.SharedFilesNodes}
	}
	return named{"shared_files", r.SharedFiles}
}

// FilesFolder returns the folder of shared files.
func (r *Rudder) FilesFolder() string { return r.files().value }

func isIP(text string) bool {
	_, err := netip.ParseAddr(text)
	return err == nil
}

func isNetwork(text string) bool {
	_, err := netip.ParsePrefix(text)
	return err == nil
}
