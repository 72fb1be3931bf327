package browser

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"muster.example/testing/fleet"
)

// profile is a user's browser profile: certificates in Mozilla's NSS store, and preferences.
type profile struct {
	t    *testing.T
	home string
}

// newProfile creates a profile that trusts the fleet's root CA and selects a matching certificate without a prompt.
func newProfile(t *testing.T, f *fleet.Fleet) profile {
	t.Helper()
	p := profile{t, t.TempDir()}
	check(t, os.MkdirAll(p.store(), 0o700))
	p.do("certutil", "-N", "--empty-password")
	operator, err := f.Operator()
	check(t, err)
	root := p.write("root.pem", operator.FleetCA)
	p.do("certutil", "-A", "-n", "fleet", "-t", "C,,", "-i", root)
	choice := map[string]any{"*,*": map[string]any{"setting": map[string]any{"filters": []any{map[string]any{}}}}}
	preferences, err := json.Marshal(map[string]any{"profile": map[string]any{
		"content_settings": map[string]any{"exceptions": map[string]any{"auto_select_certificate": choice}}}})
	check(t, err)
	p.write("chromium/Default/Preferences", string(preferences))
	return p
}

// importOperator imports the file of `muster credentials export --p12` into the store, as a user would.
func (p profile) importOperator(f *fleet.Fleet) {
	p.t.Helper()
	file := filepath.Join(p.home, "me.p12")
	export := f.Command(context.Background(), "credentials", "export", "--p12", "-o", file)
	stderr, err := export.CombinedOutput()
	check(p.t, err)
	password := regexp.MustCompile(`Password: (\S+)`).FindSubmatch(stderr)
	if password == nil {
		p.t.Fatalf("no password was printed: %s", stderr)
	}
	p.do("pk12util", "-i", file, "-w", p.write("password", string(password[1])), "-K", "")
}

func (p profile) store() string { return filepath.Join(p.home, ".pki", "nssdb") }

func (p profile) write(name, text string) string {
	p.t.Helper()
	file := filepath.Join(p.home, name)
	check(p.t, os.MkdirAll(filepath.Dir(file), 0o700))
	check(p.t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

func (p profile) do(program string, arguments ...string) {
	p.t.Helper()
	if out, err := exec.Command(program, append(arguments, "-d", "sql:"+p.store())...).CombinedOutput(); err != nil {
		p.t.Fatalf("%s: %v: %s", program, err, bytes.TrimSpace(out))
	}
}

func (p profile) newPage() *page {
	p.t.Helper()
	return newPageOf(p.t, chromedp.UserDataDir(filepath.Join(p.home, "chromium")), chromedp.Env("HOME="+p.home))
}

// A browser with a client certificate needs no link. The server's certificate is verified with only the fleet's root
// CA.
func TestBrowserCertificateSignsIn(t *testing.T) {
	t.Parallel()
	f := up(t)
	run := plan(t, f, "Seen with a certificate", []string{"n1"}, delivered("packages", "DaemonSet"))
	viewer, err := fleet.ReadViewer(f.CredentialsFile(run))
	check(t, err)

	stranger := newProfile(t, f).newPage()
	stranger.open(viewer.Address)
	stranger.until("a browser without a certificate is shown how to sign in", `document.querySelector(".notice.bad")?.innerText.includes("muster dashboard")`)
	if text := stranger.text("body"); strings.Contains(text, "Seen with a certificate") {
		t.Errorf("a browser without a certificate shows %q", text)
	}

	me := newProfile(t, f)
	me.importOperator(f)
	p := me.newPage()
	p.open(viewer.Address)
	p.untilShown("li[data-run=\"" + run + "\"]")
	p.visit("#/runs/" + run)
	p.untilShown("[data-link=live]")
	newDeliverer(t, f, run, "packages").deliver("n1", "")
	p.untilShown("[data-state=complete]")
}
