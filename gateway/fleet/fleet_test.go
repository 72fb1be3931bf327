package fleet

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
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

// An interrupted Publish whose certificate cannot replace cert.pem yet: the next one must not overwrite it.
func TestPublishKeepsTheOnlyCertificateOfTheKey(t *testing.T) {
	f := mustertest.NewFleet()
	k, folder := open(t, f, f.Service("gateway", "g1"))
	chain, key := mustertest.PEM(f.Service("gateway", "g1"))
	write(t, folder, "key.pem", key)
	write(t, folder, "cert.pem.new", chain)
	obstacle := filepath.Join(folder, "cert.pem") // a folder cannot be replaced by a file
	if err := errors.Join(os.Remove(obstacle), os.Mkdir(obstacle, 0o700)); err != nil {
		t.Fatal(err)
	}
	other, otherKey := mustertest.PEM(f.Service("gateway", "g1"))
	if err := k.Publish([]byte(otherKey), []byte(other)); err == nil {
		t.Error("it seems published")
	}
	if kept, err := os.ReadFile(filepath.Join(folder, "cert.pem.new")); err != nil || string(kept) != chain {
		t.Error("the certificate of key.pem is lost", err)
	}
	if err := os.Remove(obstacle); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(folder); err != nil {
		t.Error(err)
	}
}

// maintainOnce lets a keystore check its files once. It returns the number of failures.
func maintainOnce(t *testing.T, k *Keystore, identities musterv1.IdentityServiceClient) (failed int) {
	ctx, cancel := context.WithCancel(t.Context())
	k.Maintain(ctx, identities, slog.New(slog.DiscardHandler), Events{Expires: func(time.Time) { cancel() }, Failed: func() { failed++ }})
	return failed
}

func TestInterruptedPublishIsFinishedWhileTheGatewayRuns(t *testing.T) {
	f := mustertest.NewFleet()
	k, folder := open(t, f, f.Service("gateway", "g1"))
	renewed := f.Service("gateway", "g1")
	chain, key := mustertest.PEM(renewed)
	write(t, folder, "key.pem", key)
	write(t, folder, "cert.pem.new", chain)
	if failed := maintainOnce(t, k, nil); failed != 0 || serial(k) != renewed.Leaf.SerialNumber.String() {
		t.Errorf("the old certificate is in use, %d failures", failed)
	}
}

// renewing returns a keystore whose certificate has been valid for an hour and expires after some time, its folder, and
// the service that renews it.
func renewing(t *testing.T, left time.Duration) (*Keystore, string, musterv1.IdentityServiceClient) {
	f := mustertest.NewFleet()
	k, folder := open(t, f, f.Intermediate.Leaf("spiffe://"+mustertest.Domain+"/service/gateway/g1", func(x *x509.Certificate) {
		x.NotBefore, x.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(left)
	}))
	address := mustertest.NewAggregator(t, f).Start()
	connection, err := channel.Dial(peer.Server{Role: "aggregator"}, []string{address}, k.Roots, k.Certificate)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { connection.Close() })
	return k, folder, musterv1.NewIdentityServiceClient(connection)
}

func TestFilesThatCannotBeLoadedDoNotPreventRenewal(t *testing.T) {
	for _, name := range fileNames {
		k, folder, identities := renewing(t, 30*time.Minute)
		before := serial(k)
		good, err := os.ReadFile(filepath.Join(folder, "ca.pem"))
		if err != nil {
			t.Fatal(err)
		}
		write(t, folder, name, "damaged")
		if failed := maintainOnce(t, k, identities); failed != 0 || serial(k) == before {
			t.Errorf("%s: the old certificate is in use, %d failures", name, failed)
		}
		write(t, folder, "ca.pem", string(good))
		if again, err := Open(folder); err != nil || serial(again) != serial(k) {
			t.Errorf("%s: on disk is another one: %v", name, err)
		}
	}
}

func TestCertificateIsRenewedAtHalfOfValidity(t *testing.T) {
	for name, c := range map[string]struct {
		left   time.Duration
		renews bool
	}{"young": {2 * time.Hour, false}, "old": {30 * time.Minute, true}} {
		k, folder, identities := renewing(t, c.left)
		before := serial(k)
		if maintainOnce(t, k, identities) != 0 {
			t.Error("failed")
		}
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
