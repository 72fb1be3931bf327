package rudder

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"muster.example/gateway/command"
	"muster.example/gateway/config"
	"muster.example/gateway/listen"
	"muster.example/services/client/go/mustertest"
)

// testRelay is one relay of a test.
type testRelay struct {
	t      *testing.T
	config config.Rudder
	server *Server
	base   string // https://host:port
	client *http.Client
	folder string
	stop   func()

	streams *command.Runner
}

// agent prints a line for each host, and records its arguments.
const agent = `#!/bin/sh
echo "$@" >>"$0.calls"
for last; do :; done
IFS=,
for host in $last; do echo "ran $host"; done
`

// start serves a relay at its own host; all relays of a test share a port, as in production. The first has port 0.
func start(t *testing.T, id, host string, port int, list string, change ...func(*testRelay)) *testRelay {
	t.Helper()
	c := config.Default().Rudder
	s := &testRelay{t: t, config: c, folder: t.TempDir()}
	s.config.NodeID, s.config.HTTPSPort = id, port
	s.config.NodesListFile, s.config.NodesCertsFile = s.write("nodeslist.json", list), s.write("nodes.pem", "")
	s.config.ClientCAFile, s.config.UpstreamCertificateFile = s.config.NodesCertsFile, ""
	s.config.CertificateFile = s.write("own.pem", identityOf(id).pem())
	s.config.KeyFile = s.write("own.key", identityOf(id).keyPEM())
	s.config.SharedFilesNodes = filepath.Join(s.folder, "shared-files-nodes")
	s.config.SharedFiles, s.config.SharedFolder = filepath.Join(s.folder, "shared-files"), filepath.Join(s.folder, "shared-folder")
	if err := os.Mkdir(s.config.SharedFolder, 0o700); err != nil {
		t.Fatal(err)
	}
	s.config.RemoteRunCommand = []string{s.write("agent", agent), "remote", "run"}
	for _, c := range change {
		c(s)
	}
	s.serve(host, mustertest.ReservePort(t, host, port))
	return s
}

// withCertificates gives a relay the certificates of these nodes.
func withCertificates(ids ...string) func(*testRelay) {
	return func(s *testRelay) {
		text := ""
		for _, id := range ids {
			text += identityOf(id).pem()
		}
		s.write("nodes.pem", text)
	}
}

func (s *testRelay) serve(host string, port int) {
	s.t.Helper()
	socket, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port)))
	if err != nil {
		s.t.Fatal(err)
	}
	s.config.HTTPSPort = socket.Addr().(*net.TCPAddr).Port
	var out io.Writer = io.Discard
	if testing.Verbose() {
		out = os.Stderr
	}
	log := slog.New(slog.NewTextHandler(out, nil)).With("relay", s.config.NodeID)
	s.server, err = New(Options{
		Config: &s.config, Version: "4.5.6", Log: log, Configuration: func() error { _, err := os.Stat(s.config.CertificateFile); return err },
		Streams: s.streams, Pause: func(int) time.Duration { return 20 * time.Millisecond },
		Requests: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "requests"}, []string{"listener", "route", "code"}),
	})
	if err != nil {
		s.t.Fatal(err)
	}
	server := listen.NewServer(s.server, nil, log)
	settings := s.server.TLS()
	go server.Serve(listen.TLS(socket, settings, listen.Options{Limits: listen.Limits{Connections: 100},
		Refused: func(reason string, _ net.Addr, err error) { log.Info("refused", "reason", reason, "error", err) }}))
	s.base = "https://" + socket.Addr().String()
	s.client = s.clientOf("")
	if s.config.Dialect == "extended" {
		s.client = s.clientOf(s.config.NodeID)
	}
	s.stop = func() {
		server.Close()
		ending, cancel := context.WithTimeout(context.Background(), 10*time.Second) // the test's own context has ended
		defer cancel()
		s.server.Close(ending)
	}
	s.t.Cleanup(func() { s.stop() })
}

// restart serves again, at the same address.
func (s *testRelay) restart() {
	s.t.Helper()
	s.stop()
	address, err := url.Parse(s.base)
	if err != nil {
		s.t.Fatal(err)
	}
	s.serve(address.Hostname(), s.config.HTTPSPort)
}

// clientOf returns a client with the certificate of a node, if any.
func (s *testRelay) clientOf(id string) *http.Client {
	settings := &tls.Config{InsecureSkipVerify: true}
	if id != "" {
		settings.Certificates = []tls.Certificate{identityOf(id).certificate}
	}
	transport := &http.Transport{TLSClientConfig: settings, DisableCompression: true}
	s.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

func (s *testRelay) write(name, content string) string {
	path := filepath.Join(s.folder, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o700); err != nil {
		s.t.Fatal(err)
	}
	return path
}

func (s *testRelay) read(name string) string {
	content, err := os.ReadFile(filepath.Join(s.folder, name))
	if err != nil && !os.IsNotExist(err) {
		s.t.Fatal(err)
	}
	return string(content)
}

// calls returns the argument lists with which the command was called.
func (s *testRelay) calls() string { return s.read("agent.calls") }

type reply struct {
	code   int
	body   string
	header http.Header
}

func (r reply) String() string { return fmt.Sprintf("%d %q", r.code, r.body) }

// call sends a request to a path under the base; a body that is not a *strings.Reader is sent chunked.
func (s *testRelay) call(method, path string, body io.Reader, header ...string) reply {
	s.t.Helper()
	return s.callAs(s.client, method, s.base+basePath+"1/"+path, body, header...)
}

func (s *testRelay) callAs(client *http.Client, method, url string, body io.Reader, header ...string) reply {
	s.t.Helper()
	request, err := http.NewRequestWithContext(s.t.Context(), method, url, body)
	if err != nil {
		s.t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	response, err := client.Do(request)
	if err != nil {
		s.t.Fatalf("%s %s: %v", method, url, err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		s.t.Fatalf("%s %s: %v", method, url, err)
	}
	return reply{response.StatusCode, string(content), response.Header}
}

// post sends a form: "a=b", ....
func (s *testRelay) post(path string, fields ...string) reply {
	s.t.Helper()
	form := url.Values{}
	for _, field := range fields {
		name, value, _ := strings.Cut(field, "=")
		form.Add(name, value)
	}
	return s.call("POST", path, strings.NewReader(form.Encode()), "Content-Type", "application/x-www-form-urlencoded")
}

func (s *testRelay) want(got reply, code int, body string) {
	s.t.Helper()
	if got.code != code || got.body != body {
		s.t.Errorf("got %s, want %d %q", got, code, body)
	}
}

// extended selects the extended dialect.
func extended(s *testRelay) { s.config.Dialect = "extended" }

// withShortTimeout makes a relay disconnect slow clients early.
func withShortTimeout(s *testRelay) { s.config.ClientSilence = 200 * time.Millisecond }

// withUpstream gives a relay its policy server.
func withUpstream(id, host string) func(*testRelay) {
	return func(s *testRelay) {
		s.config.UpstreamHost, s.config.UpstreamCertificateFile = host, s.write("policy_server.pem", identityOf(id).pem())
	}
}

// codeFrom returns the code of a request that comes from an address with the certificate of a node.
func (s *testRelay) codeFrom(method, path, remote, id string) int {
	s.t.Helper()
	request := httptest.NewRequest(method, basePath+path, nil)
	request.RemoteAddr, request.TLS = remote, &tls.ConnectionState{}
	if id != "" {
		leaf, err := x509.ParseCertificate(identityOf(id).certificate.Certificate[0])
		if err != nil {
			s.t.Fatal(err)
		}
		request.TLS.PeerCertificates = []*x509.Certificate{leaf}
	}
	recorder := httptest.NewRecorder()
	s.server.ServeHTTP(recorder, request)
	return recorder.Code
}
