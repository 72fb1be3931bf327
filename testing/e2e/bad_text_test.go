package e2e

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	musterv1 "muster.example/proto/gen/go/muster/v1"
)

// latin1 is "café" in ISO 8859-1, which is not UTF-8.
const latin1 = "caf\xe9"

// Text that is not UTF-8 is delivered with U+FFFD, and the feed, REST and a restart continue after it.
func TestTextThatIsNotUTF8IsDeliveredCleaned(t *testing.T) {
	t.Parallel()
	f := up(t)
	a := operator(t, f)
	ctx := context.Background()

	submitted := run(t, f, []string{sidecarPlugin("p", "DaemonSet")}, "n1")
	config := must(f.Export(submitted, "p", "n1"))(t).File
	_, err := f.Muster("submit", "--error", latin1, "--config", config)
	wantExit(t, err, 10)
	if got := a.result(t, submitted, "p", "n1"); got.Error != "caf\uFFFD" {
		t.Errorf("the error is %q", got.Error)
	}

	// The output of a plugin that fails, the name of its file, and the content of its done file.
	for name, shell := range map[string]string{
		"prints":    `printf 'caf\351\n'; printf 'caf\351\n' >&2; exit 3`,
		"names":     `f="$RESULTS_DIR/$(printf 'caf\351')"; echo x > "$f"; echo "$f" > "$RESULTS_DIR/done"`,
		"done-file": `printf '/none/caf\351\n' > "$RESULTS_DIR/done"`,
		"folder":    `f="$RESULTS_DIR/$(printf 'caf\351')"; mkdir "$f"; echo x > "$f/x"; echo "$f" > "$RESULTS_DIR/done"`,
	} {
		t.Run(name, func(t *testing.T) {
			id := run(t, f, []string{execPlugin("p", "DaemonSet", shell)}, "n1")
			_ = f.Agent(ctx, must(f.Export(id, "p", "n1"))(t)) // it fails if the plugin fails
			got := a.result(t, id, "p", "n1")
			if got.Outcome != musterv1.Outcome_OUTCOME_GENUINE && got.Outcome != musterv1.Outcome_OUTCOME_ERROR {
				t.Errorf("the outcome is %v", got.Outcome)
			}
			if name == "names" && got.FileName != "caf\uFFFD" {
				t.Errorf("the file's name is %q", got.FileName)
			}
		})
	}

	goesOn := func() {
		t.Helper()
		id := run(t, f, []string{execPlugin("p", "DaemonSet", `echo x > "$RESULTS_DIR/x"; echo "$RESULTS_DIR/x" > "$RESULTS_DIR/done"`)}, "n1")
		check(t, f.Agent(ctx, must(f.Export(id, "p", "n1"))(t)))
		must(f.Muster("wait", id))(t)
		out, err := f.Muster("status", submitted, "--json")
		wantExit(t, err, 3) // some results are errors
		if !strings.Contains(out, "caf\uFFFD") {
			t.Errorf("the status of the first run is %s", out)
		}
	}
	goesOn()
	must(f.Muster("down"))(t)
	check(t, f.Up())
	goesOn()
}

// The command line names the option whose value is not UTF-8, and sends nothing.
func TestArgumentsThatAreNotUTF8AreRefused(t *testing.T) {
	t.Parallel()
	f := up(t)
	definition := filepath.Join(t.TempDir(), "plugin.yaml")
	check(t, os.WriteFile(definition, []byte("description: "+latin1+"\n"), 0o600))
	for name, arguments := range map[string][]string{
		"--title":  {"run", "--plugin", "hostfacts", "--node", "n1", "--title", latin1},
		"--reason": {"cancel", "--reason", latin1, "0123456789abcdef"},
		"NODE":     {"node", "show", latin1},
		"COMMAND":  {"exec", "--node", "n1", "--", "/usr/bin/echo", latin1},
		definition: {"run", "-f", definition, "--node", "n1"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := f.Muster(arguments...)
			wantExit(t, err, 2, name+" is not UTF-8")
		})
	}
	out := must(f.Muster("runs", "--json"))(t)
	if strings.Contains(out, `"id"`) {
		t.Errorf("runs were created: %s", out)
	}
}
