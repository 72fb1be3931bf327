package fleet

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	musterv1 "muster.example/proto/gen/go/muster/v1"
	"muster.example/services/client/go/channel"
	"muster.example/services/client/go/mustertest"
	"muster.example/services/client/go/peer"
)

func open(t *testing.T, f *mustertest.Fleet, c tls.Certificate) (*Keystore, string) {
	t.Helper()
	folder := f.Folder(t, c)
	k, err := Open(folder)
	if err != nil {
		t.Fatal(err)
	}
	return k, folder
}

func serial(k *Keystore) string {
	c, _ := k.Certificate()
	return c.Leaf.SerialNumber.String()
}

func write(t *testing.T, folder, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestReloadAcceptsOnlyValidPair(t *testing.T) {
	f := mustertest.NewFleet()
	k, folder := open(t, f, f.Service("gateway", "g1"))
	before := serial(k)
	other, otherKey := mustertest.PEM(f.Service("gateway", "g1"))
	write(t, folder, "key.pem", otherKey)
	if _, err := k.Reload(); err == nil || serial(k) != before {
		t.Error("a torn pair was loaded")
	}
	write(t, folder, "cert.pem", other)
	if changed, err := k.Reload(); err != nil || !changed || serial(k) == before {
		t.Errorf("a good pair was not loaded: %v", err)
	}
	if changed, err := k.Reload(); err != nil || changed {
		t.Errorf("unchanged files changed: %v", err)
	}
	for what, c := range map[string]tls.Certificate{
		"another role":  f.Service("status", "s1"),
		"another fleet": mustertest.NewFleet().Service("gateway", "g1"),
		"expired":       f.Intermediate.Expired("spiffe://" + mustertest.Domain + "/service/gateway/g1"),
		"no server":     f.Intermediate.Leaf("spiffe://"+mustertest.Domain+"/service/gateway/g1", clientOnly),
	} {
		chain, key := mustertest.PEM(c)
		write(t, folder, "cert.pem", chain)
		write(t, folder, "key.pem", key)
		if _, err := k.Reload(); err == nil {
			t.Errorf("%s was loaded", what)
		}
		if _, err := Open(folder); err == nil {
			t.Errorf("%s was opened", what)
		}
	}
}

func clientOnly(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth} }

// A crash at any step of Publish leaves a folder that Open accepts.
func TestPublishSurvivesCrashAtEachStep(t *testing.T) {
	f := mustertest.NewFleet()
	chain, key := mustertest.PEM(f.Service("gateway", "g1"))
	for step, files := range map[string]map[string]string{
		"key written":           {"key.pem.new": key},
		"both written":          {"key.pem.new": key, "cert.pem.new": chain},
		"key renamed":           {"key.pem": key, "cert.pem.new": chain},
		"both renamed":          {"key.pem": key, "cert.pem": chain},
		"half a certificate":    {"key.pem.new": key, "cert.pem.new": chain[:100]},
		"a leftover of the key": {"key.pem.new": key[:20]},
	} {
		k, folder := open(t, f, f.Service("gateway", "g1"))
		before := serial(k)
		for name, text := range files {
			write(t, folder, name, text)
		}
		again, err := Open(folder)
		if err != nil {
			t.Errorf("%s: %v", step, err)
			continue
		}
		_, renamed := files["key.pem"]
		if (serial(again) != before) != renamed {
			t.Errorf("%s: the other certificate is in use", step)
		}
		if err := again.Publish([]byte(key), []byte(chain)); err != nil {
			t.Errorf("%s: %v", step, err)
		}
	}
}

func TestCertificateIsRenewedAtHalfOfValidity(t *testing.T) {
	f := mustertest.NewFleet()
	aggregator := mustertest.NewAggregator(t, f)
	address := aggregator.Start()
	for name, c := range map[string]struct {
		left   time.Duration
		renews bool
	}{"young": {2 * time.Hour, false}, "old": {30 * time.Minute, true}} {
		k, folder := open(t, f, f.Intermediate.Leaf("spiffe://"+mustertest.Domain+"/service/gateway/g1", func(x *x509.Certificate) {
			x.NotBefore, x.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(c.left)
		}))
		before := serial(k)
		connection, err := channel.Dial(peer.Server{Role: "aggregator"}, []string{address}, k.Roots, k.Certificate)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		k.Maintain(ctx, musterv1.NewIdentityServiceClient(connection), slog.New(slog.NewTextHandler(io.Discard, nil)),
			Events{Expires: func(time.Time) { cancel() }, Failed: func() { t.Error("failed") }})
		connection.Close()
		if (serial(k) != before) != c.renews {
			t.Errorf("%s: renewed: %v", name, serial(k) != before)
		}
		if again, err := Open(folder); err != nil || serial(again) != serial(k) {
			t.Errorf("%s: on disk is another one: %v", name, err)
		}
		info, err := os.Stat(filepath.Join(folder, "key.pem"))
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("the key's mode is %v %v", info.Mode(), err)
		}
	}
}

func TestRevocationEndsActiveRequests(t *testing.T) {
	f := mustertest.NewFleet()
	c := f.Service("gateway", "g1")
	id, err := peer.FromCertificate(c.Leaf)
	if err != nil {
		t.Fatal(err)
	}
	for _, subject := range names(c.Leaf, id) {
		r := NewRevoked()
		ctx, done, err := r.Begin(t.Context(), c.Leaf, id)
		if err != nil {
			t.Fatal(err)
		}
		r.Add("spiffe://somebody/else")
		if ctx.Err() != nil {
			t.Error("ended for another identity")
		}
		r.Add(subject)
		if !errors.Is(context.Cause(ctx), ErrRevoked) {
			t.Errorf("%s: %v", subject, context.Cause(ctx))
		}
		done()
		if _, _, err := r.Begin(t.Context(), c.Leaf, id); !errors.Is(err, ErrRevoked) {
			t.Errorf("%s: admitted again", subject)
		}
		r.Replace(nil)
		if _, done, err = r.Begin(t.Context(), c.Leaf, id); err != nil {
			t.Errorf("%s: a snapshot without it still refuses it", subject)
		}
		r.Replace([]string{subject})
		done()
		if len(r.active) != 0 {
			t.Error("requests remain")
		}
	}
}
