package e2e

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"muster.example/testing/fleet"
)

// rudderPolicy lets a gateway run an agent of Rudder's, which is a script here.
func rudderPolicy(script string) string {
	return fmt.Sprintf("commands:\n  - argv: [%s, agent, run]\n    actions: [rudder]\n    classes: [info, debug]\n", script)
}

// rudderRelay is the gateway of a fleet as a relay of Rudder's, with the extended dialect.
type rudderRelay struct {
	base   string
	client *http.Client
}

// serveRudder has the gateway serve the relay API for these nodes.
func serveRudder(t *testing.T, f *fleet.Fleet, nodes ...string) rudderRelay {
	t.Helper()
	folder := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(folder, name)
		check(t, os.WriteFile(path, []byte(content), 0o700))
		return path
	}
	key := must(rsa.GenerateKey(rand.Reader, 2048))(t)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		Subject: pkix.Name{ExtraNames: []pkix.AttributeTypeAndValue{{Type: asn1.ObjectIdentifier{0, 9, 2342, 19200300, 100, 1, 1}, Value: "root"}}}}
	der := must(x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key))(t)
	list := map[string]map[string]string{}
	for _, node := range nodes {
		list[node] = map[string]string{"hostname": node + ".example", "policy-server": "root"}
	}
	text := must(json.Marshal(list))(t)
	check(t, f.Configure("gateway", map[string]string{
		"rudder.listen": "127.0.0.1:0", "rudder.dialect": "extended", "rudder.node_id": "root",
		"rudder.certificate_file": write("own.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))),
		"rudder.key_file":         write("own.key", string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}))),
		"rudder.nodes_list_file":  write("nodeslist.json", string(text)), "rudder.nodes_certs_file": `""`, "rudder.client_ca_file": `""`,
		"rudder.shared_files_nodes": filepath.Join(folder, "files"), "rudder.shared_folder": folder,
		"rudder.remote_run_command": "[" + write("remote", "#!/bin/sh\nfor last; do :; done\necho \"by command: $last\"\n") + "]",
	}))
	var addresses struct{ Rudder string }
	text = must(os.ReadFile(filepath.Join(f.Home, "run", "gateway.addresses.json")))(t)
	check(t, json.Unmarshal(text, &addresses))
	return rudderRelay{"https://" + addresses.Rudder, &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{
		InsecureSkipVerify: true, Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}}}}
}

// get calls below the relay API.
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

// Nodes that are attached run what their own policy admits of gateways; the others are reached by the command.
func TestRudderReachesAttachedNodesByTheirStreams(t *testing.T) {
	t.Parallel()
	f := up(t)
	script := filepath.Join(t.TempDir(), "rudder")
	check(t, os.WriteFile(script, []byte("#!/bin/sh\necho \"by stream: $*\"\necho trouble >&2\nexit 3\n"), 0o700))
	relay := serveRudder(t, f, "n1", "n2", "n3")
	join(t, f, "n1", rudderPolicy(script), nil, nil).attach(t)
	attached(t, f, "n2") // its policy admits operators alone
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
