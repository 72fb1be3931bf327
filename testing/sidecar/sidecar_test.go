package main

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// authority is a CA for 127.0.0.1, servers and clients.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) authority {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca"}, IsCA: true,
		BasicConstraintsValid: true, NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return authority{certificate, key}
}

func (a authority) issue(t *testing.T) (certificate, key []byte) {
	leaf, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "leaf"},
		NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, &leaf.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalECPrivateKey(leaf)
	if err != nil {
		t.Fatal(err)
	}
	return der, private
}

func block(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

// recorder accepts TLS connections and answers each with its next reply.
type recorder struct {
	requests chan string
	hello    chan *tls.ClientHelloInfo
	listener net.Listener
}

func newRecorder(t *testing.T, a authority, replies ...string) *recorder {
	der, private := a.issue(t)
	key, err := x509.ParseECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(a.certificate)
	r := &recorder{requests: make(chan string, 9), hello: make(chan *tls.ClientHelloInfo, 9)}
	config := &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}},
		ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool,
		GetConfigForClient: func(h *tls.ClientHelloInfo) (*tls.Config, error) { r.hello <- h; return nil, nil }}
	if r.listener, err = tls.Listen("tcp", "127.0.0.1:0", config); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.listener.Close() })
	go func() {
		for _, reply := range replies {
			connection, err := r.listener.Accept()
			if err != nil {
				return
			}
			r.requests <- readRequest(connection)
			_, _ = io.WriteString(connection, reply)
			connection.Close()
		}
	}()
	return r
}

// readRequest reads to the end of a chunked body and returns the raw text.
func readRequest(connection net.Conn) string {
	var raw strings.Builder
	for lines := bufio.NewReader(io.TeeReader(connection, &raw)); ; {
		if line, err := lines.ReadString('\n'); err != nil || line == "0\r\n" {
			return raw.String()
		}
	}
}

func (r *recorder) configure(t *testing.T, a authority) (folder string) {
	certificate, key := a.issue(t)
	folder = t.TempDir()
	for name, value := range map[string]string{
		"AGGREGATOR_URL": "https://" + r.listener.Addr().String() + "/some/path", "RESULT_TYPE": "systemd-logs",
		"NODE_NAME": "node-1", "SONOBUOY_RESULTS_DIR": folder, "SONOBUOY_PROGRESS_PORT": "0",
		"SONOBUOY_DONE_FILE_DELAY": "0s", "CA_CERT": block("CERTIFICATE", a.certificate.Raw),
		"CLIENT_CERT": block("CERTIFICATE", certificate), "CLIENT_KEY": block("EC PRIVATE KEY", key),
	} {
		t.Setenv(name, value)
	}
	return folder
}

func finish(t *testing.T, folder, name string, content []byte) {
	file := filepath.Join(folder, name)
	if err := errors.Join(os.WriteFile(file, content, 0o600),
		os.WriteFile(filepath.Join(folder, "done"), []byte(file+"\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
}

const ok = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"

func TestFileIsSentAsOneChunkWithoutALPN(t *testing.T) {
	a := newAuthority(t)
	server := newRecorder(t, a, ok)
	folder := server.configure(t, a)
	content := []byte(strings.Repeat("x", 3<<20))
	finish(t, folder, "journal", content)
	if err := run([]string{"single-node", "--level=trace"}); err != nil {
		t.Fatal(err)
	}
	request := <-server.requests
	head, body, _ := strings.Cut(request, "\r\n\r\n")
	lines := strings.Split(head, "\r\n")
	for _, want := range []string{"Transfer-Encoding: chunked", "User-Agent: Go-http-client/1.1",
		"Accept-Encoding: gzip", "Content-Disposition: attachment;filename=journal", "Content-Type: "} {
		if !strings.Contains(head+"\r\n", "\r\n"+want+"\r\n") {
			t.Errorf("no %q in\n%s", want, head)
		}
	}
	if want := "PUT /api/v1/results/by-node/node-1/systemd-logs HTTP/1.1"; lines[0] != want {
		t.Errorf("sent %q, want %q", lines[0], want)
	}
	if want := fmt.Sprintf("%x\r\n", len(content)); !strings.HasPrefix(body, want) {
		t.Errorf("the body begins with %q, want one chunk: %q", body[:12], want)
	}
	if hello := <-server.hello; len(hello.SupportedProtos) != 0 || hello.ServerName != "" {
		t.Errorf("offered ALPN %v and server name %q, want neither", hello.SupportedProtos, hello.ServerName)
	}
}

func TestDeliveryFailsAfterThreeAttempts(t *testing.T) {
	const unavailable = "HTTP/1.1 503 no\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
	for replies, want := range map[[3]string]bool{{unavailable, unavailable, ok}: true,
		{unavailable, unavailable, unavailable}: false} {
		a := newAuthority(t)
		server := newRecorder(t, a, replies[:]...)
		finish(t, server.configure(t, a), "r.json", []byte("{}"))
		if err := run([]string{"global"}); (err == nil) != want {
			t.Errorf("ended with %v, want success: %v", err, want)
		}
		if len(server.requests) != 3 {
			t.Errorf("%d requests, want 3", len(server.requests))
		}
	}
}

func TestConflictIsSuccessAndForbiddenIsNot(t *testing.T) {
	for code, want := range map[int]bool{409: true, 403: false, 429: false, 204: false} {
		a := newAuthority(t)
		server := newRecorder(t, a, fmt.Sprintf("HTTP/1.1 %d x\r\nConnection: close\r\n\r\n", code))
		finish(t, server.configure(t, a), "r.tar.gz", nil)
		if err := run([]string{"global"}); (err == nil) != want {
			t.Errorf("%d: ended with %v, want success: %v", code, err, want)
		}
		if request := <-server.requests; !strings.Contains(request, "Content-Type: application/gzip\r\n") {
			t.Errorf("no gzip content type in %s", request)
		}
	}
}

func TestOnlySEC1KeyIsAccepted(t *testing.T) {
	a := newAuthority(t)
	newRecorder(t, a).configure(t, a)
	pkcs8, err := x509.MarshalPKCS8PrivateKey(a.key)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("CLIENT_KEY", block("PRIVATE KEY", pkcs8))
	if _, err := loadConfig(false); err == nil {
		t.Error("a PKCS#8 key was accepted")
	}
}
