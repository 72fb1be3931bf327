package e2e

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	musterv1 "muster.example/proto/gen/go/muster/v1"
	"muster.example/testing/fleet"
)

// machine is a machine with only the CLI.
type machine struct {
	fleet *fleet.Fleet
	home  string
	on    *fleet.Host // if it has its own network
}

func newMachine(t *testing.T, f *fleet.Fleet) machine {
	t.Helper()
	home := must(os.MkdirTemp("", "machine"))(t)
	t.Cleanup(func() { check(t, fleet.RemoveHome(home)) })
	return machine{fleet: f, home: home}
}

// muster runs a command on the machine, with more environment; it returns stdout, stderr and the exit code.
func (m machine) muster(t *testing.T, environment []string, arguments ...string) (stdout, stderr string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), soon)
	defer cancel()
	command := m.fleet.Command(ctx, arguments...)
	command.Env = append(append(command.Env, "MUSTER_HOME="+m.home), environment...)
	if m.on != nil {
		command = m.on.Inside(command)
	}
	var printed, failed bytes.Buffer
	command.Stdout, command.Stderr = &printed, &failed
	_ = command.Run()
	return printed.String(), failed.String(), command.ProcessState.ExitCode()
}

// changed writes a changed copy of a credentials file.
func changed(t *testing.T, f *fleet.Fleet, run, name string, change func(*fleet.Viewer)) string {
	t.Helper()
	viewer := must(fleet.ReadViewer(f.CredentialsFile(run)))(t)
	change(viewer)
	return must(f.WriteFile(name, string(must(json.Marshal(viewer))(t))))(t)
}

func TestStatusRequiresOnlyCredentialsFile(t *testing.T) {
	t.Parallel()
	f := up(t)
	plan := []string{sidecarPlugin("logs", "DaemonSet")}
	first, second := run(t, f, plan, "n1"), run(t, f, plan, "n1")
	m := newMachine(t, f)
	file := f.CredentialsFile
	if info := must(os.Lstat(file(first)))(t); info.Mode() != 0o600 {
		t.Errorf("the credentials file has mode %v, want a plain file of 0600", info.Mode())
	}
	seen := func(run string, environment []string, arguments ...string) {
		t.Helper()
		until(t, "the run is known", func() bool {
			out, stderr, code := m.muster(t, environment, append([]string{"status"}, arguments...)...)
			if code != 7 && code != 69 {
				t.Fatalf("muster status %v: exit code %d: %s", arguments, code, stderr)
			}
			return code == 7 && strings.Contains(out, "Run "+run)
		})
	}
	seen(first, nil, "--credentials", file(first))
	seen(first, []string{"MUSTER_CREDENTIALS=" + file(first)})
	seen(second, []string{"MUSTER_CREDENTIALS=" + file(first)}, "--credentials", file(second))
	for _, command := range []string{"status", "wait"} {
		_, stderr, code := m.muster(t, nil, command, second, "--credentials", file(first))
		if code != 2 || !strings.Contains(stderr, "CREDENTIALS_OF_OTHER_RUN") {
			t.Errorf("muster %s with the file of another run: exit code %d: %s", command, code, stderr)
		}
	}
	if left := must(os.ReadDir(m.home))(t); len(left) != 0 {
		t.Errorf("the command left %v in the home", left)
	}
	_, stderr, code := m.muster(t, nil, "status")
	if code != 1 || !strings.Contains(stderr, "next:") {
		t.Errorf("without any file: exit code %d: %s", code, stderr)
	}
	// In the home: the newest file, or the named one. Without the operator's context the credentials are from this
	// file.
	check(t, os.Rename(filepath.Join(f.Home, "context.json"), filepath.Join(f.Home, "away.json")))
	m.home = f.Home
	seen(second, nil)
	seen(first, nil, first)
	seen(first, nil, first[:8])
	check(t, os.Rename(filepath.Join(f.Home, "away.json"), filepath.Join(f.Home, "context.json")))
}

// The path of the original design, in a private /tmp.
func TestCredentialsFileInOriginalPlaceIsUsedSafely(t *testing.T) {
	t.Parallel()
	f := up(t)
	run := run(t, f, []string{sidecarPlugin("logs", "DaemonSet")}, "n1")
	until(t, "the run is known", func() bool { _, err := f.Muster("status", run); return exitCode(err) == 7 })
	inTmp := func(prepare string) (string, error) {
		private := t.TempDir()
		for _, copied := range [][2]string{{filepath.Join(f.Bin, fleet.Muster), "muster"}, {f.CredentialsFile(run), "file"}} {
			content := must(os.ReadFile(copied[0]))(t)
			check(t, os.WriteFile(filepath.Join(private, copied[1]), content, 0o700))
		}
		flags := []string{"--mount"}
		if os.Getuid() != 0 {
			flags = append(flags, "--user", "--map-root-user")
		}
		command := exec.Command("unshare", append(flags, "/bin/sh", "-c", `mount --bind "$0" /tmp && cd / && chmod 600 /tmp/file && `+
			prepare+` && exec /tmp/muster status`, private)...)
		command.Env = []string{"PATH=" + os.Getenv("PATH"), "MUSTER_HOME=/tmp/home"}
		out, err := command.CombinedOutput()
		if strings.Contains(string(out), "mount: ") {
			t.Skipf("mounts are not permitted: %s", out)
		}
		return string(out), err
	}
	if out, err := inTmp("mv /tmp/file /tmp/sonobuoy.json"); !strings.Contains(out, "Run "+run) {
		t.Errorf("with /tmp/sonobuoy.json: %v: %s", err, out)
	}
	for name, prepare := range map[string]string{
		"a link":             "ln -s file /tmp/sonobuoy.json",
		"readable by others": "mv /tmp/file /tmp/sonobuoy.json && chmod 644 /tmp/sonobuoy.json",
		"another user's":     "mv /tmp/file /tmp/sonobuoy.json && chown 1 /tmp/sonobuoy.json",
	} {
		if os.Getuid() != 0 && name == "another user's" {
			continue // only root can give files away
		}
		out, err := inTmp(prepare)
		if err == nil || strings.Contains(out, "Run "+run) {
			t.Errorf("%s was accepted: %s", name, out)
		}
		if name == "readable by others" && !strings.Contains(out, "chmod 600 /tmp/sonobuoy.json") {
			t.Errorf("a file that is %s is ignored in silence: %s", name, out)
		}
	}
}

func TestInvalidCredentialsFilesAreRefusedWithReason(t *testing.T) {
	t.Parallel()
	f := up(t)
	run := run(t, f, []string{sidecarPlugin("logs", "DaemonSet")}, "n1")
	until(t, "the run is known", func() bool { _, err := f.Muster("status", run); return exitCode(err) == 7 })
	m := newMachine(t, f)
	old := changed(t, f, run, "old.json", func(v *fleet.Viewer) {
		v.CreatedAt = time.Now().Add(-25 * time.Hour).UTC().Format(time.RFC3339)
	})
	exposed := changed(t, f, run, "exposed.json", func(*fleet.Viewer) {})
	check(t, os.Chmod(exposed, 0o644))
	ended := changed(t, f, run, "ended.json", func(v *fleet.Viewer) { v.Certificate, v.Key = endedCertificate(t) })
	text := must(f.WriteFile("text.json", "host_address = https://127.0.0.1/"))(t)
	for _, c := range []struct{ name, file, says string }{
		{"too old", old, "--max-age"},
		{"readable by others", exposed, "SECRET_FILE_EXPOSED"},
		{"expired", ended, "CERTIFICATE_EXPIRED"},
		{"not JSON", text, "not a JSON object"},
		{"missing", text + "-not", "CREDENTIALS_NOT_FOUND"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, stderr, code := m.muster(t, nil, "status", "--credentials", c.file)
			if code != 1 || !strings.Contains(stderr, c.says) || !strings.Contains(stderr, c.file) || !strings.Contains(stderr, "next:") {
				t.Errorf("exit code %d, %q; want 1, and %q with the file and the next step", code, stderr, c.says)
			}
		})
	}
	// An operator does not need the outdated file in the home.
	check(t, os.WriteFile(f.CredentialsFile(run), must(os.ReadFile(old))(t), 0o600))
	if _, err := f.Muster("status", run); exitCode(err) != 7 {
		t.Errorf("an outdated file that the search found: %v", err)
	}
	if out, stderr, code := m.muster(t, nil, "status", "--credentials", old, "--max-age", "48h"); code != 7 {
		t.Errorf("an old file that was allowed: exit code %d: %s%s", code, out, stderr)
	}
}

// endedCertificate returns an expired certificate with its key.
func endedCertificate(t *testing.T) (certificate, key string) {
	t.Helper()
	private := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	leaf := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(-time.Minute)}
	der := must(x509.CreateCertificate(rand.Reader, leaf, leaf, &private.PublicKey, private))(t)
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: must(x509.MarshalECPrivateKey(private))(t)}))
}

func TestCredentialsArePrintedAndNotWritten(t *testing.T) {
	t.Parallel()
	f := up(t)
	plan := must(f.WriteFile("plan.yaml", sidecarPlugin("logs", "DaemonSet")))(t)
	out := must(f.Muster("run", "-f", plan, "--node", "n1", "--credentials", "-"))(t)
	var viewer fleet.Viewer
	check(t, json.Unmarshal([]byte(out), &viewer))
	if !strings.HasPrefix(viewer.Address, "https://") || !strings.HasSuffix(viewer.Address, "/") || viewer.Key == "" {
		t.Errorf("stdout is %.300s", out)
	}
	if files, _ := filepath.Glob(filepath.Join(f.Home, "credentials", "*")); len(files) != 0 {
		t.Errorf("files were written: %v", files)
	}
	until(t, "the status is shown", func() bool {
		at, err := viewer.Status()
		return err == nil && at.Status == "running" && len(at.Plugins) == 1
	})
	// A link instead of the folder: nothing is written through it.
	elsewhere := t.TempDir()
	_ = os.Remove(filepath.Join(f.Home, "credentials"))
	check(t, os.Symlink(elsewhere, filepath.Join(f.Home, "credentials")))
	_, err := f.Muster("run", "-f", plan, "--node", "n1")
	wantExit(t, err, 1, "is not a folder of this user")
	if left := must(os.ReadDir(elsewhere))(t); len(left) != 0 {
		t.Errorf("a file was written through the link: %v", left)
	}
}

// Exit codes for states and outcomes.
func TestExitCodesOfStatusAndWait(t *testing.T) {
	t.Parallel()
	f := up(t)
	a := operator(t, f)
	good := execPlugin("p", "DaemonSet", `echo x > "$RESULTS_DIR/x"; echo "$RESULTS_DIR/x" > "$RESULTS_DIR/done"`)
	agent := func(id string, code int) {
		t.Helper()
		wantExit(t, f.Agent(context.Background(), must(f.Export(id, "p", "n1"))(t)), code)
	}
	complete := run(t, f, []string{good}, "n1")
	agent(complete, 0)
	errors := run(t, f, []string{execPlugin("p", "DaemonSet", "exit 1")}, "n1")
	agent(errors, 10)
	cancelled := run(t, f, []string{good}, "n1")
	must(f.Muster("cancel", cancelled))(t)
	ctx, cancel := context.WithTimeout(context.Background(), soon)
	defer cancel()
	late := must(a.runs.CreateRun(ctx, &musterv1.CreateRunRequest{Plugins: []string{good}, Nodes: []string{"n1"},
		Timeout: durationpb.New(time.Second), SealGrace: durationpb.New(0)}))(t).Id
	goesOn := run(t, f, []string{good}, "n1")
	for _, c := range []struct {
		name, run   string
		code, wait  int
		untilFailed int
	}{
		{"complete", complete, 0, 0, 8},
		{"errors", errors, 3, 3, 8},
		{"cancelled", cancelled, 5, 5, 8},
		{"timed out", late, 6, 6, 8},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := f.Muster("wait", c.run)
			wantExit(t, err, c.wait)
			_, err = f.Muster("status", c.run)
			wantExit(t, err, c.code)
			_, err = f.Muster("status", c.run, "--json")
			wantExit(t, err, c.code)
			_, err = f.Muster("wait", c.run, "--until", "failed")
			wantExit(t, err, c.untilFailed)
		})
	}
	_, err := f.Muster("status", goesOn)
	wantExit(t, err, 7)
}
