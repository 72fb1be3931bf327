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

	"google.golang.org/grpc/grpclog"

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

// settings returns the configuration of a gateway without services, and a function that writes its files.
func settings(t *testing.T) (*config.Config, func(name string, content []byte) string) {
	t.Helper()
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
	return c, write
}

func sendSignal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(os.Getpid(), s); err != nil {
		t.Fatal(err)
	}
}

// Libraries have no other format and no other destination.
func TestMessagesOfGRPCAreInLog(t *testing.T) {
	c, _ := settings(t)
	var out output
	ended := make(chan int)
	go func() { ended <- serve(c, &out) }()
	out.await(t, "gateway started")
	grpclog.Error("of a library")
	out.await(t, "WARN  gRPC: of a library count=1\n")
	sendSignal(t, syscall.SIGTERM)
	if code := <-ended; code != exitOK {
		t.Error(code)
	}
}

func TestSIGHUPReloadsNodesList(t *testing.T) {
	c, write := settings(t)
	var out output
	ended := make(chan int)
	go func() { ended <- serve(c, &out) }()
	out.await(t, "gateway started")
	write("list.json", []byte(`{"n1":{"hostname":"one.example","policy-server":"root"}}`))
	sendSignal(t, syscall.SIGHUP)
	out.await(t, "nodes=1")
	write("list.json", []byte("{"))
	sendSignal(t, syscall.SIGHUP)
	out.await(t, "not reloaded")
	sendSignal(t, syscall.SIGTERM)
	if code := <-ended; code != exitOK {
		t.Error(code)
	}
}

func TestSIGHUPWithoutRudderEndsNothing(t *testing.T) {
	c, _ := settings(t)
	c.Rudder = config.Default().Rudder
	var out output
	ended := make(chan int)
	go func() { ended <- serve(c, &out) }()
	out.await(t, "gateway started")
	for range 2 {
		sendSignal(t, syscall.SIGHUP)
	}
	out.await(t, "not reloaded")
	sendSignal(t, syscall.SIGTERM)
	if code := <-ended; code != exitOK {
		t.Error(code)
	}
	out.await(t, "stopping signal=terminated")
}
