package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"muster.example/testing/fleet"
)

var update = flag.Bool("update", false, "write docs/cli.md instead of comparing it")

// help returns the help of a command and its subcommands, as Markdown.
func help(t *testing.T, bin string, words ...string) string {
	t.Helper()
	out, err := exec.Command(filepath.Join(bin, fleet.Muster), append(words, "--help")...).Output()
	if err != nil {
		t.Fatalf("muster %s --help: %v", strings.Join(words, " "), err)
	}
	if !strings.Contains(string(out), "Example") {
		t.Errorf("muster %s --help shows no example", strings.Join(words, " "))
	}
	text := fmt.Sprintf("\n### muster %s\n\n```\n%s\n```\n", strings.Join(words, " "), strings.TrimSpace(string(out)))
	if len(words) == 0 {
		text = fmt.Sprintf("\n```\n%s\n```\n", strings.TrimSpace(string(out)))
	}
	subcommands := regexp.MustCompile(`(?ms)^Subcommands:\n(.*?)(?:\n\n|\z)`).FindSubmatch(out)
	if subcommands == nil {
		return text
	}
	for _, line := range strings.Split(string(subcommands[1]), "\n") {
		// Lines with more indentation continue the summary.
		if strings.HasPrefix(line, "  ") && !strings.HasPrefix(line, "   ") {
			text += help(t, bin, append(words[:len(words):len(words)], strings.Fields(line)[0])...)
		}
	}
	return text
}

// Everything from the first code block on is generated from the program's help; the text before it is hand-written.
func TestCommandLinePageMatchesProgram(t *testing.T) {
	const page = "../../docs/cli.md"
	got := string(must(os.ReadFile(page))(t))
	byHand, _, _ := strings.Cut(got, "```")
	want := byHand + strings.TrimPrefix(help(t, must(fleet.Programs())(t)), "\n")
	if *update {
		check(t, os.WriteFile(page, []byte(want), 0o644))
	}
	if got != want {
		t.Error("docs/cli.md is outdated: go test ./testing/e2e -run CommandLinePage -update")
	}
}

// Each command names a closed pipe, also if it found it closed while it printed a message on stderr.
func TestOutputToAClosedPipeIsReportedAsClosed(t *testing.T) {
	t.Parallel()
	f := up(t)
	id := run(t, f, []string{sidecarPlugin("p", "DaemonSet")}, "n1")
	must(f.Muster("cancel", id))(t)
	for _, arguments := range [][]string{{"runs"}, {"status", id, "--json"}, {"wait", id, "--json"}, {"results", id}} {
		reader, writer, err := os.Pipe()
		check(t, err)
		check(t, reader.Close())
		ctx, cancel := context.WithTimeout(context.Background(), soon)
		command := f.Command(ctx, arguments...)
		var failed bytes.Buffer
		command.Stdout, command.Stderr = writer, &failed
		_ = command.Run()
		cancel()
		check(t, writer.Close())
		if code := command.ProcessState.ExitCode(); code != 1 || !strings.Contains(failed.String(), "OUTPUT_CLOSED") {
			t.Errorf("muster %s: exit %d: %s", strings.Join(arguments, " "), code, &failed)
		}
	}
}

// Scripts rely on exit codes, on data-only stdout, and on errors with a next step.
func TestCommandLineErrorsHaveExitCodeAndNextStep(t *testing.T) {
	t.Parallel()
	f := up(t)
	for _, c := range []struct {
		arguments []string
		code      int
		says      string
	}{
		{[]string{"nonsense"}, 2, ""},
		{[]string{"run", "--nonsense"}, 2, ""},
		{[]string{"run", "--plugin", "hostfacts", "--node", "n1", "--timeout", "soon"}, 2, ""},
		{[]string{"status", "0123456789abcdef"}, 69, "muster runs"},
		{[]string{"status", "0123"}, 69, "muster runs"},
		{[]string{"cancel", ""}, 2, "RUN is empty"},
		{[]string{"delete", ""}, 2, "RUN is empty"},
		{[]string{"exec", "--all", "--deadline", "0s", "--", "/bin/true"}, 2, "--deadline"},
		{[]string{"exec", "--all", "--class", "x y", "--", "/bin/true"}, 2, "INVALID_COMMAND"},
		{[]string{"exec", "--label", "none=1", "--", "/bin/true"}, 69, "none=1"},
		{[]string{"run", "-f", "/etc/hostname", "--node", "n1"}, 67, "/etc/hostname"},
		{[]string{"token", "create", "--node", "n1", "-o", "/nope/x"}, 1, "/nope"},
		{[]string{"operator", "add", "bob", "-o", filepath.Join(f.Home, "context.json")}, 1, "already exists"},
		{[]string{"credentials", "export", "--p12", "-o", filepath.Join(f.Home, "context.json")}, 1, "already exists"},
		{[]string{"run", "--plugin", "hostfacts", "--plugin", "hostfacts"}, 2, "named twice"},
		{[]string{"run", "--plugin", "hostfcts", "--node", "n1"}, 67, "Name a built-in plugin"},
		{[]string{"exec", "--all", "--", "/bin/true"}, 69, "no node is attached"},
		{[]string{"retrieve", "0123456789abcdef", "-o", filepath.Join(f.Home, "x")}, 69, "muster runs"},
		{[]string{"run", "--plugin", "hostfacts", "--node", "../x"}, 67, ""},
		{[]string{"run", "--plugin", "hostfacts", "--node=-n"}, 67, "hyphen"},
		{[]string{"runs", "--context", filepath.Join(f.Home, "nothing.json")}, 1, "--context"},
	} {
		out, err := f.Muster(c.arguments...)
		var exit *fleet.CommandError
		if !errors.As(err, &exit) || exit.ExitCode != c.code || !strings.Contains(exit.Stderr, c.says) {
			t.Errorf("muster %v: %v, want exit code %d and %q", c.arguments, err, c.code, c.says)
		}
		if out != "" {
			t.Errorf("muster %v: an error left %q on stdout", c.arguments, out)
		}
	}
	if list := must(f.Muster("token", "list", "--json"))(t); strings.TrimSpace(list) != "[]" {
		t.Errorf("a token was created without its file: %s", list)
	}
	id := run(t, f, []string{sidecarPlugin("p", "Job")})
	_, err := f.Muster("results", id, "-p", "nope")
	wantExit(t, err, 1, "PLUGIN_NOT_FOUND")
	_, err = f.Muster("cancel", "")
	wantExit(t, err, 2)
	if runs := must(f.Muster("runs"))(t); strings.Contains(runs, "cancelled") {
		t.Errorf("an empty argument cancelled the newest run: %s", runs)
	}
}

func TestCommandsWithoutLocalServicesSuggestUp(t *testing.T) {
	t.Parallel()
	f := up(t)
	before := must(os.ReadFile(filepath.Join(f.Home, "config", "status.yaml")))(t)
	_, err := f.Muster("up", "--status-port", "1")
	wantExit(t, err, 1, "SERVICES_RUNNING", "muster down")
	if after := must(os.ReadFile(filepath.Join(f.Home, "config", "status.yaml")))(t); !bytes.Equal(before, after) {
		t.Errorf("a refused command changed the configuration:\n%s", after)
	}
	file := token(t, f, "--node", "n1")
	must(f.Muster("down"))(t)
	for _, command := range []string{"runs", "nodes", "exec --all -- /bin/true", "status"} {
		_, err := f.Muster(strings.Fields(command)...)
		wantExit(t, err, 78, "muster up")
	}
	_, err = f.Muster("node", "join", "--token-file", file, "--dir", filepath.Join(t.TempDir(), "n1"))
	wantExit(t, err, 78, "UNREACHABLE", "Check the address")
}

func TestChangeThatHasNoEffectIsReported(t *testing.T) {
	t.Parallel()
	f := up(t)
	reported := func(says string, arguments ...string) {
		t.Helper()
		var stderr bytes.Buffer
		command := f.Command(context.Background(), arguments...)
		command.Stderr = &stderr
		if err := command.Run(); err != nil || !strings.Contains(stderr.String(), says) {
			t.Errorf("muster %v: %v, %s; want %q", arguments, err, &stderr, says)
		}
	}
	file := token(t, f, "--node", "n1")
	must(f.Muster("node", "join", "--token-file", file, "--dir", filepath.Join(t.TempDir(), "n1")))(t)
	reported("has no label nope", "node", "label", "n1", "--remove", "nope")
	reported("Operator ann is added", "operator", "add", "ann")
	reported("another context of the same operator", "operator", "add", "ann")
	var job struct{ Job string }
	check(t, f.JSON(&job, "exec", "--node", "n1", "--ttl", "1s", "--detach", "--json", "--", "/bin/true"))
	_, _ = f.Muster("job", "logs", "-f", job.Job)
	reported("had already ended", "job", "cancel", job.Job)
	_, err := f.Muster("job", "logs", job.Job, "--node", "nope")
	wantExit(t, err, 69, "NOT_A_TARGET")
}

// Every command that prints data prints JSON for programs.
func TestEveryDataCommandPrintsJSON(t *testing.T) {
	t.Parallel()
	f := up(t)
	id := run(t, f, []string{execPlugin("p", "Job", `echo x > "$RESULTS_DIR/x"; echo "$RESULTS_DIR/x" > "$RESULTS_DIR/done"`)})
	check(t, f.Agent(context.Background(), must(f.Export(id, "p", "global"))(t)))
	until(t, "the run is complete", func() bool {
		status, _ := f.Muster("status", id, "--json")
		return strings.Contains(status, `"complete"`)
	})
	must(f.Muster("operator", "add", "ann"))(t)
	other := run(t, f, []string{sidecarPlugin("p", "Job")})
	file := token(t, f, "--node", "n1")
	must(f.Muster("node", "join", "--token-file", file, "--dir", filepath.Join(t.TempDir(), "n1")))(t)
	var tokens []struct{ ID string }
	check(t, f.JSON(&tokens, "token", "list", "--json"))
	var job struct{ Job string }
	check(t, f.JSON(&job, "exec", "--node", "n1", "--detach", "--json", "--", "/bin/true"))
	greet := must(f.WriteFile("greet.yaml", greetType("1.0.0", "example/greet@sha256:"+strings.Repeat("a", 64))))(t)
	hi := must(f.WriteFile("hi.yaml", hiTemplate))(t)
	must(f.Muster("type", "push", greet))(t)
	must(f.Muster("template", "create", "-f", hi))(t)
	secret := "secret put a/b --file " + greet
	deploy := "deploy hi --set name=Ada --node n1"
	var deployed shownDeployment
	check(t, f.JSON(&deployed, append(strings.Fields(deploy), "--json")...))
	// The helpers above, share_test.go, exec_test.go, attach_test.go, backup_test.go, deployment_test.go, deployment_retry_test.go and
	// conformance_test.go, build_test.go, bundle_test.go, workspace_test.go and workspace_delete_test.go read the JSON of these commands.
	tested := "conformance run\nconformance baseline set\nconformance baseline show\nconformance baseline remove\nrun\nshare\nshared list\nshared show\nexec\njob logs\nbackup\nrestore\ndeployment logs\ndeployment retry\ndeployment destroy\ntemplate build\ntemplate push" +
		"\nworkspace show\nworkspace versions\nworkspace restore\nworkspace unlock\nworkspace delete"
	for _, command := range []string{
		"type push " + greet, "type push -f " + greet, "template create " + hi, "type list", "type show greet",
		"template create -f " + hi, "template list", "template show hi", "template diff hi hi", "type diff greet greet",
		"template pull hi -o " + filepath.Join(t.TempDir(), "hi.json"),
		deploy, "deployment list", "deployment show " + deployed.Deployment, "deployment outputs " + deployed.Deployment,
		"deployment cancel " + deployed.Deployment, "conformance show", secret, "secret list", "secret delete a/b", "workspace list",
		"token list", "token revoke " + tokens[0].ID, "nodes", "node show n1", "node label n1 rack=b1", "node revoke n1",
		"runs", "status " + id, "status " + id + " --watch", "wait " + id, "results " + id, "results " + other,
		"retrieve " + id + " -o " + f.Home, "cancel " + other, "operator list", "operator revoke ann", "dashboard",
		"job list", "job show " + job.Job, "job cancel " + job.Job, "audit", "verify", "retention", "pin " + id, "unpin " + id, "version", "up"} {
		out := must(f.Muster(append(strings.Fields(command), "--json")...))(t)
		if !json.Valid([]byte(out)) {
			t.Errorf("muster %s --json printed %q", command, out)
		}
		tested += "\n" + command
	}
	for _, section := range strings.Split(string(must(os.ReadFile("../../docs/cli.md"))(t)), "\n### muster ")[1:] {
		name, text, _ := strings.Cut(section, "\n")
		if strings.Contains(text, "\n  --json ") && !strings.Contains(tested+" ", name+" ") && !strings.Contains(tested+"\n", name+"\n") {
			t.Errorf("muster %s has --json, and no test", name)
		}
	}
}

// The remaining user commands: each succeeds and prints something.
func TestOtherCommandsSucceed(t *testing.T) {
	t.Parallel()
	f := up(t)
	id := run(t, f, []string{sidecarPlugin("p", "DaemonSet")}, "n1", "n2")
	for _, shell := range []string{"bash", "zsh", "fish"} {
		if script := must(f.Muster("completion", shell))(t); !strings.Contains(script, "credentials") {
			t.Errorf("the completion for %s has no commands", shell)
		}
	}
	environment := must(f.Muster("credentials", "export", id, "--plugin", "p", "--any-node", "--format", "env"))(t)
	kubernetes := must(f.Muster("credentials", "export", id, "--plugin", "p", "--node", "n1", "--format", "kubernetes"))(t)
	secret, configuration, found := strings.Cut(kubernetes, "\n---\n")
	if !strings.Contains(environment, "EC PRIVATE KEY") || !found || !strings.Contains(secret, "tls.key") ||
		strings.Contains(configuration, "PRIVATE KEY") {
		t.Errorf("a key is missing or in the wrong place:\n%s\n%s", environment, kubernetes)
	}
	file := must(f.WriteFile("result.txt", "from a shell script"))(t)
	credential := must(f.Export(id, "p", "n1"))(t)
	must(f.Muster("submit", file, "--config", credential.File))(t)
	if report := must(f.Muster("results", id))(t); !strings.Contains(report, "p") {
		t.Errorf("muster results: %s", report)
	}
	must(f.Muster("cancel", id))(t)
	must(f.Muster("delete", id))(t)
	if runs := must(f.Muster("runs"))(t); strings.Contains(runs, id) {
		t.Errorf("a deleted run is listed: %s", runs)
	}
}

// No secret is in the environment or the arguments of a service, nor in its log.
func TestSecretsStayInTheirFiles(t *testing.T) {
	t.Parallel()
	f := up(t)
	id := run(t, f, []string{sidecarPlugin("p", "DaemonSet")}, "n1")
	credential := must(f.Export(id, "p", "n1"))(t)
	must(put(t, credential, "n1", "x"))(t)
	var seen bytes.Buffer
	for _, process := range f.Processes() {
		for _, file := range []string{"environ", "cmdline"} {
			text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", process.PID, file))
			check(t, err)
			seen.Write(text)
		}
	}
	seen.WriteString(f.Logs())
	if strings.Contains(seen.String(), "PRIVATE KEY") {
		t.Error("a private key is in an environment, in arguments or in a log")
	}
	check(t, filepath.Walk(f.Home, func(path string, info os.FileInfo, err error) error {
		if err != nil {
			return nil // it has been removed
		}
		others := info.Mode().Perm() & 0o077
		if info.IsDir() && others != 0 {
			t.Errorf("folder %s has mode %v: others can read it", path, info.Mode())
		}
		if info.Mode().IsRegular() && others != 0 {
			if text, err := os.ReadFile(path); err == nil && bytes.Contains(text, []byte("PRIVATE KEY")) {
				t.Errorf("%s holds a key and has mode %v", path, info.Mode())
			}
		}
		return nil
	}))
}

func TestMessagesOfGRPCAreNotPrinted(t *testing.T) {
	t.Parallel()
	f := up(t)
	command := f.Command(context.Background(), "runs", "--json")
	command.Env = append(command.Environ(), "GRPC_VERBOSITY=DEBUG", "GRPC_TRACE=http,api")
	var stderr bytes.Buffer
	command.Stderr = &stderr
	check(t, command.Run())
	if stderr.Len() > 0 {
		t.Errorf("stderr has %.300s", stderr.String())
	}
}
