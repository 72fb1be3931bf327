package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"sync"

	"muster.example/testing/fleet"
)

// plainCommand is the first argument with which this program runs itself as a plain aggregator.
const plainCommand = "plain-aggregator"

// plainAggregator is a server in the manner of Sonobuoy's aggregator: a PUT with a client certificate is written to a
// file, without a checksum and without a sync. It serves one upload at a time, and refuses a second result of a key.
type plainAggregator struct {
	folder string

	mutex    sync.Mutex // held while a body is received, as there
	received map[string]bool
}

// byPlainAggregator starts a fresh plain aggregator and sends the load to it as old sidecars do.
func byPlainAggregator(folder string, way sending) (one sample, err error) {
	if err := makeCertificates(folder); err != nil {
		return one, err
	}
	port, err := freePort()
	if err != nil {
		return one, err
	}
	self, err := os.Executable()
	if err != nil {
		return one, err
	}
	server, err := startServer(port, self, plainCommand, fmt.Sprintf("-listen=127.0.0.1:%d", port), "-folder="+folder)
	if err != nil {
		return one, err
	}
	defer func() { err = errors.Join(err, stopServer(server)) }()
	way.url = fmt.Sprintf("https://127.0.0.1:%d/api/v1/results/by-node/node-%%d/load", port)
	way.useFolder(folder)
	sender, err := way.command()
	if err != nil {
		return one, err
	}
	return measured([]fleet.Process{{PID: server.Process.Pid, Name: "plain aggregator"}}, sender)
}

// servePlain is the program of the plain aggregator.
func servePlain(arguments []string) error {
	set := flag.NewFlagSet(plainCommand, flag.ExitOnError)
	listen := set.String("listen", "", "the address")
	folder := set.String("folder", "", "the folder with ca.pem, server.pem and server.key; the results are stored in data/")
	if err := set.Parse(arguments); err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(*folder, "ca.pem"))
	if err != nil {
		return err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return errors.New("ca.pem has no certificate")
	}
	mux := http.NewServeMux()
	p := &plainAggregator{folder: filepath.Join(*folder, "data"), received: map[string]bool{}}
	mux.HandleFunc("PUT /api/v1/results/by-node/{node}/{plugin}", p.put)
	server := http.Server{Addr: *listen, Handler: mux, TLSConfig: &tls.Config{MinVersion: tls.VersionTLS13,
		ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool, NextProtos: []string{"http/1.1"}}}
	return server.ListenAndServeTLS(filepath.Join(*folder, "server.pem"), filepath.Join(*folder, "server.key"))
}

func (p *plainAggregator) put(answer http.ResponseWriter, request *http.Request) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	key := filepath.Join(request.PathValue("plugin"), "results", request.PathValue("node"))
	if p.received[key] {
		http.Error(answer, "the result was received before", http.StatusConflict)
		return
	}
	p.received[key] = true
	if err := store(filepath.Join(p.folder, key), request.Body); err != nil {
		http.Error(answer, err.Error(), http.StatusInternalServerError)
	}
}

// store writes a body to a file of a new folder.
func store(folder string, body io.Reader) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	file, err := os.Create(filepath.Join(folder, "result"))
	if err != nil {
		return err
	}
	_, err = io.Copy(file, body)
	return errors.Join(err, file.Close())
}
