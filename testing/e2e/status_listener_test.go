package e2e

import (
	"bytes"
	"crypto/tls"
	"encoding/pem"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"muster.example/testing/fleet"
)

// certificates creates certificates with openssl, as a user would.
const certificates = `set -eu
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=clients -keyout ca.key -out ca.pem
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=others -keyout other-ca.key -out other-ca.pem
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=status -keyout server.key -out server.pem \
	-addext subjectAltName=DNS:localhost,IP:127.0.0.1
for who in "client ca" "stranger other-ca"; do
	set -- $who
	openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "/CN=$1" -keyout "$1.key" -out "$1.csr"
	printf 'extendedKeyUsage=clientAuth\n' > ext
	openssl x509 -req -in "$1.csr" -CA "$2.pem" -CAkey "$2.key" -CAcreateserial -days 2 -extfile ext -out "$1.pem"
done
chmod 600 ./*.key`

// makeCertificates creates the files and returns their paths.
func makeCertificates(t *testing.T) (file func(name string) string) {
	t.Helper()
	folder := t.TempDir()
	command := exec.Command("/bin/sh", "-c", certificates)
	command.Dir = folder
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("openssl: %v: %s", err, out)
	}
	return func(name string) string { return filepath.Join(folder, name) }
}

// The first design: the creator of a run provides the server's certificate and the CA of clients.
func TestRunHasStatusListenerWithGivenCertificate(t *testing.T) {
	t.Parallel()
	f := up(t)
	file := makeCertificates(t)
	plan := must(f.WriteFile("plan.yaml", sidecarPlugin("logs", "DaemonSet")))(t)
	other := run(t, f, []string{sidecarPlugin("logs", "DaemonSet")}, "n9")
	run := must(f.CreateRun("-f", plan, "--node", "n1", "--status-client-ca", file("ca.pem"),
		"--status-cert", file("server.pem"), "--status-key", file("server.key")))(t)
	viewer := must(fleet.ReadViewer(f.CredentialsFile(run)))(t)
	own, shared := must(url.Parse(viewer.Address))(t), must(url.Parse(must(fleet.ReadViewer(f.CredentialsFile(other)))(t).Address))(t)
	if own.Port() == shared.Port() || own.Port() == "" {
		t.Errorf("the address is %s, want a port of its own beside %s", own, shared)
	}
	until(t, "its credentials show the run", func() bool {
		text, err := f.Muster("status", "--credentials", f.CredentialsFile(run))
		return exitCode(err) == 7 && strings.Contains(text, "Run "+run)
	})

	connection := must(tls.Dial("tcp", own.Host, &tls.Config{InsecureSkipVerify: true}))(t) // the certificate is compared below
	defer connection.Close()
	block, _ := pem.Decode(must(os.ReadFile(file("server.pem")))(t))
	if !bytes.Equal(connection.ConnectionState().PeerCertificates[0].Raw, block.Bytes) {
		t.Error("the server certificate is not the given one")
	}

	ask := func(who ...string) (string, string) {
		body := filepath.Join(t.TempDir(), "body")
		arguments := append([]string{"--silent", "--show-error", "--max-time", "30", "--cacert", file("server.pem"), "--output", body,
			"--write-out", "%{http_code}"}, who...)
		code, _ := exec.Command("curl", append(arguments, viewer.Address+"status")...).Output()
		text, _ := os.ReadFile(body)
		return string(code), string(text)
	}
	as := func(who string) []string { return []string{"--cert", file(who + ".pem"), "--key", file(who + ".key")} }
	if code, body := ask(as("client")...); code != "200" || !strings.Contains(body, run) || !strings.Contains(body, `"node":"n1"`) {
		t.Errorf("a client of the given CA: %s %s", code, body)
	}
	for name, who := range map[string][]string{"without a certificate": nil, "of another CA": as("stranger")} {
		if code, body := ask(who...); code != "000" || body != "" { // refused in the handshake
			t.Errorf("a client %s: answered %s %s", name, code, body)
		}
	}
	key := strings.Split(string(must(os.ReadFile(file("server.key")))(t)), "\n")[1]
	if strings.Contains(f.Logs(), key) || strings.Contains(must(f.Muster("runs", "--json"))(t), key) {
		t.Error("the key is in a log or in an answer")
	}

	_, err := f.Muster("run", "-f", plan, "--node", "n1", "--status-client-ca", file("ca.pem"), "--status-cert", file("server.pem"),
		"--status-key", file("client.key"))
	if err == nil {
		t.Error("a key that does not match the certificate was accepted")
	}
}
