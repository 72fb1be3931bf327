package main

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"muster.example/testing/fleet"
)

const (
	s3Key    = "benchmark"
	s3Secret = "benchmark-secret"
	s3Bucket = "results"
)

// byVersity starts a fresh VersityGW, an S3 server, and sends the load to it. It verifies the SHA-256 of the body that the
// sender names, and does not sync. It has no client certificates.
func byVersity(folder string, l load) (one sample, err error) {
	if err := makeCertificates(folder); err != nil {
		return one, err
	}
	if err := os.MkdirAll(filepath.Join(folder, "s3", s3Bucket), 0o700); err != nil {
		return one, err
	}
	port, err := freePort()
	if err != nil {
		return one, err
	}
	server, err := startServer(port, versity(), "--access", s3Key, "--secret", s3Secret, "--port", fmt.Sprintf("127.0.0.1:%d", port),
		"--cert", filepath.Join(folder, "server.pem"), "--key", filepath.Join(folder, "server.key"), "--quiet",
		"posix", filepath.Join(folder, "s3"))
	if err != nil {
		return one, err
	}
	defer func() { err = errors.Join(err, stopServer(server)) }()
	way := sending{protocol: "s3", url: fmt.Sprintf("https://127.0.0.1:%d/%s/result-%%d", port, s3Bucket), load: l}
	way.useFolder(folder)
	sender, err := way.command()
	if err != nil {
		return one, err
	}
	return measured([]fleet.Process{{PID: server.Process.Pid, Name: "versitygw"}}, sender)
}

// versity returns the program that testing/bench installs.
func versity() string {
	if path := os.Getenv("VERSITYGW"); path != "" {
		return path
	}
	return "versitygw"
}

// s3 puts bodies with the SHA-256 of each in the signed header. The digest is computed once for all: the figure is that of
// the server.
func (s sending) s3(config *tls.Config, body []byte) (func(int, int64) error, error) {
	client := s.client(config)
	sum := sha256.Sum256(body)
	digest := hex.EncodeToString(sum[:])
	return func(_ int, number int64) error {
		request, err := http.NewRequest(http.MethodPut, s.address(number), bytes.NewReader(body))
		if err != nil {
			return err
		}
		signS3(request, digest, time.Now().UTC())
		return do(client, request)
	}, nil
}

// signS3 signs a request with AWS Signature Version 4.
func signS3(request *http.Request, digest string, now time.Time) {
	stamp, day := now.Format("20060102T150405Z"), now.Format("20060102")
	request.Header.Set("X-Amz-Content-Sha256", digest)
	request.Header.Set("X-Amz-Date", stamp)
	names := "host;x-amz-content-sha256;x-amz-date"
	canonical := strings.Join([]string{request.Method, request.URL.EscapedPath(), "", "host:" + request.URL.Host,
		"x-amz-content-sha256:" + digest, "x-amz-date:" + stamp, "", names, digest}, "\n")
	scope := day + "/us-east-1/s3/aws4_request"
	hashed := sha256.Sum256([]byte(canonical))
	text := strings.Join([]string{"AWS4-HMAC-SHA256", stamp, scope, hex.EncodeToString(hashed[:])}, "\n")
	key := []byte("AWS4" + s3Secret)
	for _, part := range []string{day, "us-east-1", "s3", "aws4_request", text} {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(part))
		key = mac.Sum(nil)
	}
	request.Header.Set("Authorization", fmt.Sprintf("AWS4-HMAC-SHA256 Credential=%s/%s, SignedHeaders=%s, Signature=%s",
		s3Key, scope, names, hex.EncodeToString(key)))
}
