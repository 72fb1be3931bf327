package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"muster.example/testing/fleet"
)

// senderCommand is the first argument with which this program runs itself as a sender, so that the CPU time of the
// senders is that of a process.
const senderCommand = "send"

// sending configures senders in Go: HTTP PUTs as old sidecars send them, and requests that a protocol makes of them.
type sending struct {
	protocol    string // put, s3 or etcd
	url         string // %d becomes the number of the body
	ca          string // PEM files
	certificate string
	key         string
	load        load
	fresh       bool // a new connection for each body
	chunked     bool // no length: one HTTP chunk, as old sidecars send it
}

func (s *sending) flags(set *flag.FlagSet) {
	set.StringVar(&s.protocol, "protocol", "put", "put, s3 or etcd")
	set.StringVar(&s.url, "url", "", "the address; %d becomes the number of the body")
	set.StringVar(&s.ca, "ca", "", "PEM file with the CA of the server")
	set.StringVar(&s.certificate, "cert", "", "PEM file with the certificate of the client")
	set.StringVar(&s.key, "key", "", "PEM file with its key")
	set.Int64Var(&s.load.size, "size", smallSize, "bytes of each body")
	set.Int64Var(&s.load.count, "count", 1, "the number of bodies")
	set.IntVar(&s.load.senders, "senders", 1, "the number of concurrent senders")
	set.BoolVar(&s.fresh, "fresh", false, "open a new connection for each body")
	set.BoolVar(&s.chunked, "chunked", false, "send each body as one HTTP chunk, without its length")
}

// command returns the program that sends.
func (s sending) command() (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return exec.Command(self, append(append([]string{senderCommand}, s.load.flags()...), "-protocol="+s.protocol,
		"-url="+s.url, "-ca="+s.ca, "-cert="+s.certificate, "-key="+s.key, fmt.Sprintf("-fresh=%t", s.fresh),
		fmt.Sprintf("-chunked=%t", s.chunked))...), nil
}

// answer is the output of a sender, the same as that of the programs in testing/load.
type answer struct {
	Seconds    float64 `json:"seconds"`
	Failed     int64   `json:"failed"`
	FirstError string  `json:"first_error"`
	P50        float64 `json:"p50_ms"`
	P99        float64 `json:"p99_ms"`
}

// send is the sender's program.
func send(arguments []string) error {
	var s sending
	set := flag.NewFlagSet(senderCommand, flag.ExitOnError)
	s.flags(set)
	if err := set.Parse(arguments); err != nil {
		return err
	}
	config, err := s.tls()
	if err != nil {
		return err
	}
	body := make([]byte, s.load.size)
	rand.New(rand.NewSource(1)).Read(body)
	one := s.put
	switch s.protocol {
	case "s3":
		one = s.s3
	case "etcd":
		one = s.etcd
	}
	sender, err := one(config, body)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(s.measure(sender))
}

// measure calls `one` for every number, from all senders.
func (s sending) measure(one func(sender int, number int64) error) (a answer) {
	var next atomic.Int64
	var mu sync.Mutex
	var all sync.WaitGroup
	var latencies []float64
	begin := time.Now()
	for sender := range s.load.senders {
		all.Add(1)
		go func() {
			defer all.Done()
			for i := next.Add(1) - 1; i < s.load.count; i = next.Add(1) - 1 {
				start := time.Now()
				err := one(sender, i)
				mu.Lock()
				latencies = append(latencies, time.Since(start).Seconds()*1000)
				if err != nil {
					a.Failed++
					a.FirstError = err.Error()
				}
				mu.Unlock()
			}
		}()
	}
	all.Wait()
	a.Seconds = time.Since(begin).Seconds()
	slices.Sort(latencies)
	a.P50, a.P99 = latencies[len(latencies)/2], latencies[len(latencies)*99/100]
	return a
}

func (s sending) tls() (*tls.Config, error) {
	text, err := os.ReadFile(s.ca)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, errors.New(s.ca + " has no certificate")
	}
	pair, err := tls.LoadX509KeyPair(s.certificate, s.key)
	return &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{pair}}, err
}

// client returns a client with one connection for each sender.
func (s sending) client(config *tls.Config) *http.Client {
	return &http.Client{Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: s.fresh,
		MaxIdleConnsPerHost: s.load.senders, WriteBufferSize: 64 << 10}}
}

func (s sending) address(number int64) string {
	return strings.Replace(s.url, "%d", fmt.Sprint(number), 1)
}

// put sends bodies as old sidecars do.
func (s sending) put(config *tls.Config, body []byte) (func(int, int64) error, error) {
	client := s.client(config)
	return func(_ int, number int64) error {
		request, err := http.NewRequest(http.MethodPut, s.address(number), io.NopCloser(bytes.NewReader(body)))
		if err != nil {
			return err
		}
		request.ContentLength = int64(len(body))
		if s.chunked {
			request.ContentLength = -1
		}
		return do(client, request)
	}, nil
}

// do sends a request and discards the answer, so that the connection is kept.
func do(client *http.Client, request *http.Request) error {
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(response.Body, 1000))
	if response.StatusCode/100 != 2 {
		return fmt.Errorf("%s: status %d: %s", request.URL, response.StatusCode, text)
	}
	return nil
}

// use writes a credential for senders into the fleet's folder.
func (s *sending) use(f *fleet.Fleet, credential *fleet.Credential) (err error) {
	for _, file := range []struct {
		into       *string
		name, text string
	}{{&s.ca, "sender-ca.pem", credential.CA}, {&s.certificate, "sender.pem", credential.Certificate},
		{&s.key, "sender.key", credential.Key}} {
		path, writeErr := f.WriteFile(file.name, file.text)
		*file.into = path
		err = errors.Join(err, writeErr)
	}
	return err
}

// useFolder uses the certificates that makeCertificates has written.
func (s *sending) useFolder(folder string) {
	s.ca, s.certificate, s.key = filepath.Join(folder, "ca.pem"), filepath.Join(folder, "client.pem"), filepath.Join(folder, "client.key")
}

// legacyCommand returns the program that sends to the run's listener for legacy clients.
func (s sending) legacyCommand(f *fleet.Fleet, credential *fleet.Credential) (*exec.Cmd, error) {
	if err := s.use(f, credential); err != nil {
		return nil, err
	}
	s.url = credential.AggregatorURL + "/api/v1/results/by-node/node-%d/load"
	return s.command()
}
