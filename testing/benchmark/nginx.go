package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"muster.example/testing/fleet"
)

// nginx is a running server that accepts PUTs from clients with a certificate.
type nginx struct {
	url     string
	command *exec.Cmd
	output  bytes.Buffer
}

const nginxConfiguration = `
%[3]s
daemon off;
worker_processes auto;
pid %[1]s/nginx.pid;
error_log stderr warn;
events { worker_connections 1024; }
http {
  access_log off;
  client_body_temp_path %[1]s/bodies;
  proxy_temp_path %[1]s/unused1;
  fastcgi_temp_path %[1]s/unused2;
  uwsgi_temp_path %[1]s/unused3;
  scgi_temp_path %[1]s/unused4;
  server {
    listen 127.0.0.1:%[2]d ssl;
    ssl_certificate %[1]s/server.pem;
    ssl_certificate_key %[1]s/server.key;
    ssl_protocols TLSv1.3;
    ssl_client_certificate %[1]s/ca.pem;
    ssl_verify_client on;
    client_max_body_size 0;
    client_body_buffer_size 1m;
    keepalive_requests 10000000;
    location / { root %[1]s/data; dav_methods PUT; create_full_put_path on; }
  }
}
`

// startNginx returns when nginx accepts connections.
func startNginx(folder string) (*nginx, error) {
	if err := makeCertificates(folder); err != nil {
		return nil, err
	}
	if err := os.Mkdir(filepath.Join(folder, "data"), 0o700); err != nil {
		return nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	user := ""
	if os.Getuid() == 0 {
		user = "user root;" // so that its workers may write into our folder
	}
	file := filepath.Join(folder, "nginx.conf")
	if err := os.WriteFile(file, []byte(fmt.Sprintf(nginxConfiguration, folder, port, user)), 0o600); err != nil {
		return nil, err
	}
	binary, err := exec.LookPath("nginx")
	if err != nil {
		binary = "/usr/sbin/nginx"
	}
	n := &nginx{url: fmt.Sprintf("https://127.0.0.1:%d", port)}
	n.command = exec.Command(binary, "-c", file, "-p", folder)
	n.command.Stdout, n.command.Stderr = &n.output, &n.output
	if err := n.command.Start(); err != nil {
		return nil, err
	}
	err = fleet.Until(10*time.Second, "nginx accepts connections", func() bool {
		connection, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			connection.Close()
		}
		return err == nil
	})
	if err != nil {
		return nil, errors.Join(err, n.stop(), errors.New(n.output.String()))
	}
	return n, nil
}

// processes returns the master and its workers.
func (n *nginx) processes() ([]fleet.Process, error) {
	master := n.command.Process.Pid
	var children []string
	if err := fleet.Until(10*time.Second, "nginx has a worker for each processor", func() bool {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", master, master))
		children = strings.Fields(string(text))
		return len(children) >= runtime.NumCPU()
	}); err != nil {
		return nil, err
	}
	all := []fleet.Process{{PID: master, Name: "nginx"}}
	for _, child := range children {
		pid, err := strconv.Atoi(child)
		if err != nil {
			return nil, err
		}
		all = append(all, fleet.Process{PID: pid, Name: "nginx"})
	}
	return all, nil
}

func (n *nginx) stop() error {
	if err := n.command.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	return n.command.Wait()
}

// freePort returns a port that is free now.
func freePort() (int, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port, nil
}

// makeCertificates writes ca.pem, and server and client certificates (P-256) with their keys.
func makeCertificates(folder string) error {
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	ca := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "benchmark"}, IsCA: true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign, NotAfter: time.Now().Add(24 * time.Hour)}
	if err := writeCertificate(filepath.Join(folder, "ca"), ca, ca, caKey, caKey); err != nil {
		return err
	}
	for number, name := range []string{"server", "client"} {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			return err
		}
		leaf := &x509.Certificate{SerialNumber: big.NewInt(int64(number + 2)), Subject: pkix.Name{CommonName: name},
			IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, NotAfter: ca.NotAfter}
		if err := writeCertificate(filepath.Join(folder, name), leaf, ca, key, caKey); err != nil {
			return err
		}
	}
	return nil
}

func writeCertificate(path string, leaf, ca *x509.Certificate, key, caKey *ecdsa.PrivateKey) error {
	der, err := x509.CreateCertificate(rand.Reader, leaf, ca, &key.PublicKey, caKey)
	if err != nil {
		return err
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(path+".pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600),
		os.WriteFile(path+".key", pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: private}), 0o600))
}
