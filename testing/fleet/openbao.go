package fleet

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// OpenBao is a real server of Vault's protocol with its own folder: in memory, with TLS, initialised and not sealed. Its
// key-value engine, of version 2, is "secret".
type OpenBao struct {
	Address string // https://HOST:PORT
	CA      string // the file with the CA of its certificate
	Program string // bao, which is also a client

	folder  string
	token   string // of root
	unseal  string
	process *exec.Cmd
}

// InstallOpenBao returns the path of its program. `root` is that of the checkout.
func InstallOpenBao(root string) (string, error) {
	command := exec.Command(filepath.Join(root, "testing/openbao"))
	var problems bytes.Buffer
	command.Stderr = &problems
	out, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("testing/openbao: %w: %s", err, problems.String())
	}
	return strings.TrimSpace(string(out)), nil
}

// StartOpenBao starts a server.
func StartOpenBao(root string) (*OpenBao, error) {
	program, err := InstallOpenBao(root)
	if err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp("", "bao")
	if err != nil {
		return nil, err
	}
	b := &OpenBao{Program: program, folder: folder, CA: filepath.Join(folder, "ca.pem")}
	if err = b.start(); err != nil {
		return nil, fmt.Errorf("%w: %w", err, b.Close())
	}
	return b, nil
}

func (b *OpenBao) start() error {
	if err := b.writeCertificates(); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	address := listener.Addr().String()
	b.Address = "https://" + address
	configuration := fmt.Sprintf("storage \"inmem\" {}\napi_addr = %q\nlistener \"tcp\" {\n  address = %q\n  tls_cert_file = %q\n  tls_key_file = %q\n}\n",
		b.Address, address, filepath.Join(b.folder, "server.pem"), filepath.Join(b.folder, "server.key"))
	file := filepath.Join(b.folder, "server.hcl")
	if err := errors.Join(os.WriteFile(file, []byte(configuration), 0o600), listener.Close()); err != nil { // it has no other way to get a free port
		return err
	}
	log, err := os.Create(filepath.Join(b.folder, "log"))
	if err != nil {
		return err
	}
	defer log.Close()
	b.process = exec.Command(b.Program, "server", "-config="+file)
	b.process.Env = []string{"HOME=" + b.folder}
	b.process.Stdout, b.process.Stderr = log, log
	if err := b.process.Start(); err != nil {
		return err
	}
	var keys struct {
		Unseal []string `json:"unseal_keys_b64"`
		Root   string   `json:"root_token"`
	}
	if err := Until(time.Minute, "OpenBao is initialised", func() bool {
		out, err := b.Run("operator", "init", "-key-shares=1", "-key-threshold=1", "-format=json")
		return err == nil && json.Unmarshal([]byte(out), &keys) == nil && len(keys.Unseal) == 1
	}); err != nil {
		return err
	}
	b.token, b.unseal = keys.Root, keys.Unseal[0]
	if err := b.Unseal(); err != nil {
		return err
	}
	_, err = b.Run("secrets", "enable", "-path=secret", "-version=2", "kv")
	return err
}

// Unseal opens the server after `operator seal`.
func (b *OpenBao) Unseal() error {
	_, err := b.Run("operator", "unseal", b.unseal)
	return err
}

// Run runs a command of its client as root, and returns what it prints.
func (b *OpenBao) Run(arguments ...string) (string, error) {
	command := exec.Command(b.Program, arguments...)
	command.Env = []string{"HOME=" + b.folder, "BAO_ADDR=" + b.Address, "BAO_CACERT=" + b.CA, "BAO_TOKEN=" + b.token}
	out, err := command.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("bao %s: %w: %s", strings.Join(arguments, " "), err, out)
	}
	return strings.TrimSpace(string(out)), nil
}

// Process is the running server.
func (b *OpenBao) Process() Process { return Process{Name: "bao", PID: b.process.Process.Pid} }

// Close ends the server and removes its folder.
func (b *OpenBao) Close() error {
	if b.process != nil && b.process.Process != nil {
		_ = b.process.Process.Signal(syscall.SIGCONT) // a test may have stopped it
		_ = b.process.Process.Kill()
		_ = b.process.Wait() // it was killed
	}
	return os.RemoveAll(b.folder)
}

// ClientCertificate returns the files of a certificate with this name that the CA of the server has issued.
func (b *OpenBao) ClientCertificate(name string) (certificate, key string, err error) {
	ca, err := os.ReadFile(filepath.Join(b.folder, "ca.key"))
	if err != nil {
		return "", "", err
	}
	block, _ := pem.Decode(ca)
	private, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return "", "", err
	}
	text, err := os.ReadFile(b.CA)
	if err != nil {
		return "", "", err
	}
	block, _ = pem.Decode(text)
	parent, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return "", "", err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(3), Subject: pkix.Name{CommonName: name},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	base := filepath.Join(b.folder, name)
	return base + ".pem", base + ".key", b.issue(base, template, parent, private)
}

func (b *OpenBao) writeCertificates() error {
	ca := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "bao CA"},
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	if err := writeCertificate(filepath.Join(b.folder, "ca"), ca, ca, key, key); err != nil {
		return err
	}
	server := &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "bao"},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	return b.issue(filepath.Join(b.folder, "server"), server, ca, key)
}

func (b *OpenBao) issue(base string, template, parent *x509.Certificate, signer any) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	return writeCertificate(base, template, parent, key, signer)
}

// writeCertificate writes BASE.pem and BASE.key.
func writeCertificate(base string, template, parent *x509.Certificate, key *ecdsa.PrivateKey, signer any) error {
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	certificate, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		return err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(base+".pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate}), 0o600),
		os.WriteFile(base+".key", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600))
}
