package e2e

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"maps"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"muster.example/testing/fleet"
)

// rudderPolicy lets a gateway run an agent of Rudder, here a script.
func rudderPolicy(script string) string {
	return fmt.Sprintf("commands:\n  - argv: [%s, agent, run]\n    actions: [rudder]\n    classes: [info, debug]\n", script)
}

// rudderIdentity is the key and the self-signed certificate of a Rudder node.
type rudderIdentity struct {
	key *rsa.PrivateKey
	der []byte
}

func newRudderIdentity(t *testing.T, id string) rudderIdentity {
	t.Helper()
	key := must(rsa.GenerateKey(rand.Reader, 2048))(t)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		Subject: pkix.Name{ExtraNames: []pkix.AttributeTypeAndValue{{Type: asn1.ObjectIdentifier{0, 9, 2342, 19200300, 100, 1, 1}, Value: id}}}}
	return rudderIdentity{key, must(x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key))(t)}
}

func (i rudderIdentity) certificate() tls.Certificate {
	return tls.Certificate{Certificate: [][]byte{i.der}, PrivateKey: i.key}
}

func (i rudderIdentity) pem() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: i.der}))
}

// rudderRelay is the gateway of a fleet as a Rudder relay, with the extended dialect.
type rudderRelay struct {
	base   string
	client *http.Client
}

// writeIn returns a function that writes files to a folder of the test.
func writeIn(t *testing.T) func(name, content string) string {
	folder := t.TempDir()
	return func(name, content string) string {
		path := filepath.Join(folder, name)
		check(t, os.WriteFile(path, []byte(content), 0o700))
		return path
	}
}

// serveRudder configures the gateway's relay API for these nodes, by their ids, with additional fields.
func serveRudder(t *testing.T, f *fleet.Fleet, id string, nodes map[string]rudderIdentity, fields map[string]string) rudderRelay {
	t.Helper()
	write, own := writeIn(t), newRudderIdentity(t, id)
	list, certificates := map[string]map[string]string{}, ""
	for node, identity := range nodes {
		list[node] = map[string]string{"hostname": node + ".example", "policy-server": id}
		if identity.key == nil {
			continue
		}
		sum := sha256.Sum256(must(x509.MarshalPKIXPublicKey(&identity.key.PublicKey))(t))
		list[node]["key-hash"] = "sha256:" + hex.EncodeToString(sum[:])
		certificates += identity.pem()
	}
	values := map[string]string{
		"listen": "127.0.0.1:0", "dialect": "extended", "node_id": id, "certificate_file": write("own.pem", own.pem()),
		"key_file":         write("own.key", string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(own.key)}))),
		"nodes_list_file":  write("nodeslist.json", string(must(json.Marshal(list))(t))),
		"nodes_certs_file": write("nodes.pem", certificates), "client_ca_file": `""`,
		"shared_files_nodes": filepath.Join(t.TempDir(), "files"), "shared_folder": t.TempDir(),
		"remote_run_command": "[" + write("remote", "#!/bin/sh\nfor last; do :; done\necho \"by command: $last\"\n") + "]",
	}
	maps.Copy(values, fields)
	configured := map[string]string{}
	for name, value := range values {
		configured["rudder."+name] = value
	}
	check(t, f.Configure("gateway", configured))
	var addresses struct{ Rudder string }
	text := must(os.ReadFile(filepath.Join(f.Home, "run", "gateway.addresses.json")))(t)
	check(t, json.Unmarshal(text, &addresses))
	return rudderRelay{"https://" + addresses.Rudder, &http.Client{Transport: &http.Transport{DisableKeepAlives: true,
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{own.certificate()}}}}}
}

// get requests a path under the relay API.
func (r rudderRelay) get(t *testing.T, path string) string {
	t.Helper()
	response := must(r.client.Get(r.base + "/rudder/relay-api/" + path))(t)
	defer response.Body.Close()
	body := must(io.ReadAll(response.Body))(t)
	if response.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d %s", path, response.StatusCode, body)
	}
	return string(body)
}

// Attached nodes run what their own policy admits for gateways; the others are reached by the command.
func TestRudderReachesAttachedNodesOverStreams(t *testing.T) {
	t.Parallel()
	f := up(t)
	script := filepath.Join(t.TempDir(), "rudder")
	check(t, os.WriteFile(script, []byte("#!/bin/sh\necho \"by stream: $*\"\necho trouble >&2\nexit 3\n"), 0o700))
	relay := serveRudder(t, f, "root", map[string]rudderIdentity{"n1": {}, "n2": {}, "n3": {}}, nil)
	join(t, f, "n1", rudderPolicy(script), nil, nil).attach(t)
	attached(t, f, "n2") // its policy admits only operators
	type record struct {
		Event, Stderr, Error string
		Code                 *int
	}
	ends, lines := map[string]record{}, []string{}
	for line := range strings.Lines(relay.get(t, "remote-run/all?classes=info,debug")) {
		if !strings.HasPrefix(line, "{") {
			lines = append(lines, strings.TrimSpace(line))
			continue
		}
		var r struct {
			record
			Node string
		}
		check(t, json.Unmarshal([]byte(line), &r))
		if r.Event == "end" {
			ends[r.Node] = r.record
		}
	}
	slices.Sort(lines)
	if want := []string{"n1: by stream: agent run -D info,debug", "n3: by command: n3.example"}; !slices.Equal(lines, want) {
		t.Errorf("printed was %q", lines)
	}
	if end := ends["n1"]; end.Code == nil || *end.Code != 3 || end.Stderr != "trouble\n" || end.Error != "" {
		t.Errorf("n1 ended with %+v", end)
	}
	if end := ends["n2"]; end.Code != nil || !strings.Contains(end.Error, "refused: POLICY_REFUSED") {
		t.Errorf("n2 ended with %+v", end)
	}
	if end := ends["n3"]; end.Code == nil || *end.Code != 0 {
		t.Errorf("n3 ended with %+v", end)
	}
	job := strings.Fields(strings.Split(must(f.Muster("job", "list"))(t), "\n")[1])[0]
	if out := must(f.Muster("job", "show", job, "--json"))(t); !strings.Contains(out, "/service/gateway/") {
		t.Errorf("the job is not the gateway's own:\n%s", out)
	}
}

// The gateway is killed right after it accepted a file for a node elsewhere, while the policy server is unreachable.
func TestSharedFileSurvivesKillOfGateway(t *testing.T) {
	t.Parallel()
	f := up(t)
	var away atomic.Bool
	away.Store(true)
	type delivery struct{ path, query, body string }
	came := make(chan delivery, 1)
	root, n1 := newRudderIdentity(t, "root"), newRudderIdentity(t, "n1")
	upstream := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if away.Load() || err != nil || r.Method != http.MethodPost {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		came <- delivery{r.URL.Path, r.URL.RawQuery, string(body)}
	}))
	upstream.TLS = &tls.Config{Certificates: []tls.Certificate{root.certificate()}, MinVersion: tls.VersionTLS13}
	upstream.StartTLS()
	defer upstream.Close()
	host, port, err := net.SplitHostPort(upstream.Listener.Addr().String())
	check(t, err)
	relay := serveRudder(t, f, "r1", map[string]rudderIdentity{"n1": n1}, map[string]string{
		"upstream_host": host, "https_port": port, "upstream_certificate_file": writeIn(t)("root.pem", root.pem())})

	content := strings.Repeat("what n1 has for n2\n", 10_000)
	sum := sha512.Sum512([]byte(content))
	signature := must(rsa.SignPKCS1v15(rand.Reader, n1.key, crypto.SHA512, sum[:]))(t)
	answer := must(relay.client.Post(relay.base+"/rudder/relay-api/shared-files/node/n2/file?source-uuid=n1&signature="+hex.EncodeToString(signature),
		"application/octet-stream", strings.NewReader(content)))(t)
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusAccepted {
		t.Fatal(answer.Status)
	}
	must(f.Process(fleet.Gateway))(t).Kill()
	upload := strings.TrimPrefix(answer.Header.Get("Location"), "/rudder/relay-api/")
	until(t, "the gateway is running again, and has the upload", func() bool {
		again, err := relay.client.Get(relay.base + "/rudder/relay-api/" + upload)
		if err != nil {
			return false
		}
		defer again.Body.Close()
		text, _ := io.ReadAll(again.Body)
		return strings.Contains(string(text), `"state":"pending"`)
	})
	away.Store(false)
	var got delivery
	select {
	case got = <-came:
	case <-time.After(soon):
		t.Fatal("it was not delivered")
	}
	if got.path != "/rudder/relay-api/shared-files/node/n2/file" || got.body != content || !strings.Contains(got.query, hex.EncodeToString(signature)) {
		t.Errorf("delivered was %s?%.100s, %d bytes", got.path, got.query, len(got.body))
	}
	until(t, "it is delivered", func() bool { return strings.Contains(relay.get(t, upload), `"state":"delivered"`) })
}
