package main

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"muster.example/gateway/config"
	"muster.example/services/client/go/mustertest"
)

// output collects the log of a gateway.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(line []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(line)
}

func (o *output) await(t *testing.T, line string) {
	t.Helper()
	mustertest.Await(t, "the log has "+line, func() bool {
		o.mu.Lock()
		defer o.mu.Unlock()
		return strings.Contains(o.text.String(), line)
	})
}

func TestSIGHUPReloadsNodesList(t *testing.T) {
	fleet := mustertest.NewFleet()
	own := fleet.Service("gateway", "g1")
	key, err := x509.MarshalPKCS8PrivateKey(own.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	write := func(name string, content []byte) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	c := config.Default()
	c.StateFolder = filepath.Dir(fleet.Folder(t, own))
	c.Listen, c.StatusListen, c.LegacyPort = "127.0.0.1:0", "127.0.0.1:0", 0
	c.AggregatorTargets, c.StatusTargets = []string{"127.0.0.1:1"}, nil // no service is needed for this test
	r := &c.Rudder
	r.Listen, r.NodeID, r.NodesCertsFile, r.ClientCAFile = "127.0.0.1:0", "root", "", ""
	r.CertificateFile = write("own.pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: own.Certificate[0]}))
	r.KeyFile = write("own.key", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}))
	r.NodesListFile, r.SharedFiles, r.SharedFolder = write("list.json", []byte("{}")), filepath.Join(folder, "files"), folder

	var out output
	ended := make(chan int)
	go func() { ended <- serve(c, &out) }()
	out.await(t, "gateway started")
	signal := func(s syscall.Signal) {
		if err := syscall.Kill(os.Getpid(), s); err != nil {
			t.Fatal(err)
		}
	}
	write("list.json", []byte(`{"n1":{"hostname":"one.example","policy-server":"root"}}`))
	signal(syscall.SIGHUP)
	out.await(t, "nodes=1")
	write("list.json", []byte("{"))
	signal(syscall.SIGHUP)
	out.await(t, "not reloaded")
	signal(syscall.SIGTERM)
	if code := <-ended; code != exitOK {
		t.Error(code)
	}
}
