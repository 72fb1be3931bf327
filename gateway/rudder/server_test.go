package rudder

import (
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"muster.example/gateway/config"
	"muster.example/gateway/limits"
)

func TestUnknownRouteIsNotFound(t *testing.T) {
	s := startRoot(t)
	for _, path := range []string{"/", "/rudder", "/rudder/relay-api", "/rudder/relay-api/", "/rudder/relay-api/1/", "/rudder/relay-api/2/remote-run/all",
		"/rudder/relay-api/1/1/system/info", "/rudder/relay-api/remote-run", "/rudder/relay-api/remote-run/nodes/", "/rudder/relay-api/remote-run/all/x",
		"/rudder/relay-api/remote-run/node/n-a", "/rudder/relay-api/shared-folder", "/rudder/relay-api/system/none", "/rudder/relay-api/1/metrics"} {
		for _, method := range []string{"GET", "POST", "PUT", "DELETE"} {
			got := s.callAs(s.client, method, s.base+path, nil)
			s.want(got, 404, "NOT FOUND")
			if kind := got.header.Get("Content-Type"); kind != "text/plain; charset=utf-8" {
				t.Error(kind)
			}
		}
	}
}

func TestVersionSegmentIsOptional(t *testing.T) {
	s := startRoot(t)
	for _, base := range []string{"1/", ""} {
		s.want(s.callAs(s.client, "GET", s.base+basePath+base+"system/info", nil), 200,
			`{"result":"success","action":"getSystemInfo","data":{"major-version":"4.5","full-version":"4.5.6"}}`)
	}
}

func TestSystemStatusChecksConfiguration(t *testing.T) {
	s := startRoot(t)
	s.want(s.call("GET", "system/status", nil), 200, `{"result":"success","action":"getStatus","data":{"configuration":{"status":"success"}}}`)
	if err := os.Remove(s.config.CertificateFile); err != nil {
		t.Fatal(err)
	}
	got := s.call("GET", "system/status", nil)
	if got.code != 200 || !strings.HasPrefix(got.body, `{"result":"success","action":"getStatus","data":{"configuration":{"status":"error","details":"`) ||
		!strings.Contains(got.body, s.config.CertificateFile) {
		t.Error(got)
	}
}

func TestFailedReloadKeepsOldState(t *testing.T) {
	s := startRoot(t)
	for _, malformed := range []string{"{", `{"n-a":{"hostname":"x"}}`} {
		s.write("nodeslist.json", malformed)
		got := s.call("POST", "system/reload", nil)
		if got.code != 500 || !strings.HasPrefix(got.body, `{"result":"error","action":"reloadConfiguration","errorDetails":"nodes list: `) {
			t.Error(got)
		}
		s.want(s.post("remote-run/nodes", "nodes=n-a", "keep_output=true"), 200, "ran a.example\n")
	}
	if err := os.Truncate(s.config.NodesListFile, limits.ListFile+1); err != nil {
		t.Fatal(err)
	}
	if got := s.call("POST", "system/reload", nil); got.code != 500 || !strings.Contains(got.body, "larger than") {
		t.Errorf("a list above the limit: %s", got)
	}
	s.want(s.post("remote-run/nodes", "nodes=n-a", "keep_output=true"), 200, "ran a.example\n")
	s.write("nodeslist.json", listOf("n-a new.example root"))
	s.write("nodes.pem", "no certificate")
	if got := s.call("POST", "system/reload", nil); got.code != 500 {
		t.Error(got)
	}
	s.write("nodes.pem", "")
	s.want(s.call("POST", "system/reload", nil), 200, `{"result":"success","action":"reloadConfiguration"}`)
	s.want(s.post("remote-run/nodes", "nodes=n-a", "keep_output=true"), 200, "ran new.example\n")
	s.want(s.call("GET", "system/reload", nil), 404, "NOT FOUND")
}

func TestStartWithMalformedListFails(t *testing.T) {
	s := startRoot(t)
	s.write("nodeslist.json", "{")
	if _, err := New(Options{Config: &s.config, Log: s.server.log}); err == nil || !strings.Contains(err.Error(), "nodeslist.json") {
		t.Error(err)
	}
}

func TestNodeIDIsReadFromFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "uuid.hive")
	for text, want := range map[string]string{"root\n": "root", "37817-x\n": "37817-x", "": "", "a/b": ""} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := readID(&config.Rudder{NodeIDFile: file}); got != want || (err == nil) != (want != "") {
			t.Error(text, got, err)
		}
	}
}

func TestMetricsHaveFamiliesOfRelay(t *testing.T) {
	s := start(t, "root", "127.0.0.1", 0, listOf(lines("root root.example root\n"+deep)...))
	got := s.callAs(s.client, "GET", s.base+"/metrics", nil)
	if got.code != 200 || got.header.Get("Content-Type") != "application/octet-stream" {
		t.Error(got.code, got.header)
	}
	for _, line := range []string{
		`rudder_relayd_reports_total{status="ok"} 0`, `rudder_relayd_reports_total{status="forward_error"} 0`,
		`rudder_relayd_inventories_total{status="forward_ok"} 0`, "rudder_relayd_managed_nodes_total 5",
		"rudder_relayd_sub_nodes_total 9", "rudder_relayd_reports_processing_duration_seconds_count 0", "muster_rudder_remote_runs 0",
		"muster_rudder_spooled 0", "muster_rudder_shared_bytes 0", `muster_rudder_spool_outcomes_total{state="delivered"} 0`,
	} {
		if !strings.Contains(got.body, line+"\n") {
			t.Errorf("no %q", line)
		}
	}
	s.want(s.callAs(s.client, "POST", s.base+"/metrics", nil), 404, "NOT FOUND")
}

func TestAccessDependsOnAddressAndPath(t *testing.T) {
	s := startRoot(t, func(s *testRelay) {
		s.config.PolicyServer, s.config.Networks = []string{"192.0.2.1"}, []string{"198.51.100.0/24", "2001:db8::/32"}
	})
	asked := func(method, path, remote string) int {
		request := httptest.NewRequest(method, basePath+path, nil)
		if path == "metrics" {
			request = httptest.NewRequest(method, "/metrics", nil)
		}
		request.RemoteAddr, request.TLS = remote, nil
		recorder := httptest.NewRecorder()
		s.server.ServeHTTP(recorder, request)
		return recorder.Code
	}
	for _, remote := range []string{"127.0.0.1:1", "[::1]:1", "[::ffff:127.0.0.9]:1", "192.0.2.1:1", "[::ffff:192.0.2.1]:1", "192.0.2.2:1", "198.51.100.7:1",
		"[2001:db8::5]:1", "nonsense"} {
		loopback := strings.Contains(remote, "127.") || strings.Contains(remote, "::1]")
		network := strings.Contains(remote, "198.51") || strings.Contains(remote, "db8")
		server := strings.Contains(remote, "192.0.2.1:") || strings.Contains(remote, "192.0.2.1]")
		for path, admitted := range map[string]bool{
			"remote-run/all": loopback || server, "shared-files/a/b/c": loopback || network, "system/info": loopback, "metrics": loopback,
		} {
			if got := asked("DELETE", path, remote); (got == 404) != admitted || (got == 403) == admitted {
				t.Errorf("%s from %s: %d", path, remote, got)
			}
		}
		if got := asked("GET", "shared-folder/x", remote); got != http.StatusForbidden { // no certificate
			t.Errorf("shared-folder from %s: %d", remote, got)
		}
	}
}

func TestCertValidationRequiresCertificate(t *testing.T) {
	s := startRoot(t, withCertificates("n-a"), func(s *testRelay) { s.config.PeerAuthentication = "cert_validation" })
	for id, want := range map[string]int{"": 403, "stranger": 403, "n-a": 200} {
		url := s.base + basePath + "remote-run/nodes"
		got := s.callAs(s.clientOf(id), "POST", url, strings.NewReader("nodes="), "Content-Type", "application/x-www-form-urlencoded")
		if got.code != want {
			t.Errorf("%q: %s", id, got)
		}
		if got := s.callAs(s.clientOf(id), "GET", s.base+basePath+"system/info", nil); got.code != 200 {
			t.Errorf("%q: %s", id, got)
		}
	}
}

func TestMinimumTLSVersionIsConfigurable(t *testing.T) {
	for minimum, want := range map[string]bool{"1.2": true, "1.3": false} {
		s := startRoot(t, func(s *testRelay) { s.config.TLSMinimum = minimum })
		conn, err := tls.Dial("tcp", strings.TrimPrefix(s.base, "https://"), &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12})
		if (err == nil) != want {
			t.Error(minimum, err)
		}
		if err == nil {
			conn.Close()
		}
	}
}
