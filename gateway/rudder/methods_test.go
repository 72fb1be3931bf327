package rudder

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"muster.example/services/client/go/mustertest"
)

// methods returns the folder of the methods that agents of Rudder call.
func methods(t *testing.T) string {
	t.Helper()
	folder, err := filepath.Abs("../../deploy/rudder")
	if err != nil {
		t.Fatal(err)
	}
	return folder
}

// agentOf returns the environment of a node's agent whose policy server is this relay.
func (s *testRelay) agentOf(id string) []string {
	return append(os.Environ(), "RUDDER_UUID="+id, "RUDDER_POLICY_SERVER="+strings.TrimPrefix(s.base, "https://"),
		"RUDDER_SERVER_CERTIFICATE="+s.write("policy_server_of_agent.pem", identityOf(s.config.NodeID).pem()),
		"RUDDER_KEY="+s.write("agent.key", identityOf(id).keyPEM()), "RUDDER_TIMEOUT=20")
}

// tool runs the script for a file of a node, and returns its exit code and output.
func (s *testRelay) tool(environment []string, arguments ...string) (int, string) {
	s.t.Helper()
	command := exec.CommandContext(s.t.Context(), filepath.Join(methods(s.t), "muster-shared-file"), arguments...)
	command.Env = environment
	out, err := command.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		s.t.Fatal(err)
	}
	return command.ProcessState.ExitCode(), string(out)
}

func TestScriptSendsOnlyMissingFiles(t *testing.T) {
	s := startExtended(t, withCertificates("n-a"))
	agent, file := s.agentOf("n-a"), s.write("a file.conf", content)
	for _, want := range []int{10, 0, 0} {
		if code, said := s.tool(agent, "n-b", "file", file, "1d 12h"); code != want || said != "" {
			t.Error(code, said)
		}
	}
	if got := s.read("shared-files-nodes/n-b/n-a/file"); got != content {
		t.Errorf("%q", got)
	}
	s.write("a file.conf", "another version")
	if code, said := s.tool(agent, "n-b", "file", file); code != 10 || strings.Contains(s.read("shared-files-nodes/n-b/n-a/file.medata"), "expires") {
		t.Error(code, said)
	}
	if code, said := s.tool(agent, "n-b", "empty", s.write("empty", "")); code != 10 {
		t.Error(code, said)
	}
}

func TestScriptSharesFileWithNodeElsewhere(t *testing.T) {
	f := startExtendedTree(t)
	agent, file := f.r1.agentOf("n-c"), f.r1.write("file", content)
	f.root.stop()
	for _, want := range []int{11, 0} { // sent; in transit
		if code, said := f.r1.tool(agent, "n-e", "file", file); code != want {
			t.Error(code, said)
		}
	}
	f.root.restart()
	mustertest.Await(t, "the file is delivered", func() bool { return f.root.read("shared-files-nodes/r3/n-e/n-c/file") == content })
}

func TestScriptReportsErrors(t *testing.T) {
	s := startExtended(t, withCertificates("n-a"))
	agent, file := s.agentOf("n-a"), s.write("file", content)
	for _, c := range []struct {
		change    string // of the environment
		arguments []string
		code      int
		said      string
	}{
		{"", []string{"n-b", "file"}, 2, "usage: "},
		{"", []string{"n-b", "../file", file}, 2, "is not a valid id"},
		{"", []string{"n-b", "file", file, "1d&x=y"}, 2, "is not a valid time to live"},
		{"", []string{"n-b", "file", file + ".none"}, 1, "cannot read"},
		{"", []string{"nobody", "file", file}, 1, "refused file with 404: target_uuid: node not found"},
		{"", []string{"n-b", "file", file, "nonsense"}, 1, "refused file with 400: ttl: "},
		{"RUDDER_KEY=" + s.write("other.key", identityOf("n-b").keyPEM()), []string{"n-b", "file", file}, 1, "refused file with 403: signature: "},
		{"RUDDER_KEY=/none", []string{"n-b", "file", file}, 1, "with /none"},
		{"RUDDER_SERVER_CERTIFICATE=" + s.write("other.pem", identityOf("n-b").pem()), []string{"n-b", "file", file}, 1, "does not respond"},
		{"RUDDER_POLICY_SERVER=127.0.0.1:1", []string{"n-b", "file", file}, 1, "does not respond"},
	} {
		if code, said := s.tool(append(agent, c.change), c.arguments...); code != c.code || !strings.Contains(said, c.said) {
			t.Errorf("%q %q: %d %s", c.change, c.arguments, code, said)
		}
	}
	s.wantFiles()
}

// cfAgent runs a policy of CFEngine that calls a method, and returns the classes that it defined.
func (s *testRelay) cfAgent(environment []string, call, report string) string {
	s.t.Helper()
	home := filepath.Join(s.folder, "cfengine")
	environment = append(environment, "CFENGINE_TEST_OVERRIDE_WORKDIR="+home)
	if s.read("cfengine/ppkeys/localhost.pub") == "" {
		for _, name := range []string{"inputs", "bin", "ppkeys"} {
			if err := os.MkdirAll(filepath.Join(home, name), 0o700); err != nil {
				s.t.Fatal(err)
			}
		}
		checker, err := exec.LookPath("cf-promises")
		if err != nil {
			s.t.Fatal(err)
		}
		if err := os.Symlink(checker, filepath.Join(home, "bin", "cf-promises")); err != nil {
			s.t.Fatal(err)
		}
		if out, err := s.program(environment, "cf-key"); err != nil {
			s.t.Fatal(err, out)
		}
	}
	folder := methods(s.t)
	s.write("cfengine/inputs/def.json", fmt.Sprintf(`{"variables": {
		"default:def.muster_sharedfile_scripts": {"value": %q}, "default:def.muster_sharedfile_folder": {"value": %q},
		"default:def.muster_sharedfile_server": {"value": "localhost"}, "default:def.muster_sharedfile_uuid_file": {"value": %q}}}`,
		folder, s.config.SharedFilesNodes, s.write("uuid.hive", "n-b\n")))
	policy := s.write("cfengine/inputs/promises.cf", fmt.Sprintf(`body common control
{
  inputs => { "%[1]s/sharedfile_common.cf", "%[1]s/sharedfile_to_node.cf", "%[1]s/sharedfile_from_node.cf", "%[1]s/sharedfile_relay.cf" };
  bundlesequence => { "main" };
}
bundle agent main
{
  methods:
    "call" usebundle => %[2]s;
  reports:
    "%[3]s_kept" if => "%[3]s_kept";
    "%[3]s_repaired" if => "%[3]s_repaired";
    "%[3]s_error" if => "%[3]s_error";
}
`, folder, call, report))
	if err := os.Chmod(policy, 0o600); err != nil {
		s.t.Fatal(err)
	}
	out, err := s.program(environment, "cf-agent", "-KI", "-f", policy)
	if err != nil {
		s.t.Fatal(err, out)
	}
	return out
}

func (s *testRelay) program(environment []string, name string, arguments ...string) (string, error) {
	command := exec.CommandContext(s.t.Context(), name, arguments...)
	command.Env = environment
	var out bytes.Buffer
	command.Stdout, command.Stderr = &out, &out
	err := command.Run()
	return out.String(), err
}

func TestCFEngineMethodSharesFile(t *testing.T) {
	if _, err := exec.LookPath("cf-agent"); err != nil {
		t.Skip("cfengine3 is not installed")
	}
	s := startExtended(t, withCertificates("n-a"))
	agent, file := s.agentOf("n-a"), s.write("a file.conf", content)
	call := fmt.Sprintf(`sharedfile_to_node("n-b", "file.conf", "%s", "1d 12h")`, file)
	for _, want := range []string{"_repaired", "_kept"} {
		if got := s.cfAgent(agent, call, "sharedfile_to_node_file_conf"); !strings.Contains(got, "R: sharedfile_to_node_file_conf"+want) {
			t.Error(want, got)
		}
	}
	if got := s.read("shared-files-nodes/n-b/n-a/file.conf"); got != content {
		t.Errorf("%q", got)
	}
	call = fmt.Sprintf(`sharedfile_to_node("nobody", "file.conf", "%s", "")`, file)
	if got := s.cfAgent(agent, call, "sharedfile_to_node_file_conf"); !strings.Contains(got, "R: sharedfile_to_node_file_conf_error") {
		t.Error(got)
	}
}

// CFEngine reads from this machine's disk if the server is named localhost: it needs no daemon.
func TestCFEngineMethodFetchesFile(t *testing.T) {
	if _, err := exec.LookPath("cf-agent"); err != nil {
		t.Skip("cfengine3 is not installed")
	}
	s := startExtended(t, withCertificates("n-a"))
	s.want(s.share("n-b", "n-a", "file.conf", content), 200, "")
	to := filepath.Join(s.folder, "fetched")
	call := fmt.Sprintf(`sharedfile_from_node("n-a", "file.conf", "%s")`, to)
	for _, want := range []string{"_repaired", "_kept"} {
		if got := s.cfAgent(os.Environ(), call, "sharedfile_from_node_file_conf"); !strings.Contains(got, "R: sharedfile_from_node_file_conf"+want) {
			t.Error(want, got)
		}
	}
	if got := s.read("fetched"); got != content {
		t.Errorf("%q", got)
	}
	call = fmt.Sprintf(`sharedfile_from_node("n-e", "file.conf", "%s")`, to)
	if got := s.cfAgent(os.Environ(), call, "sharedfile_from_node_file_conf"); !strings.Contains(got, "R: sharedfile_from_node_file_conf_error") {
		t.Error(got)
	}
}

func TestCFEngineMethodFetchesFilesForRelay(t *testing.T) {
	if _, err := exec.LookPath("cf-agent"); err != nil {
		t.Skip("cfengine3 is not installed")
	}
	f := startExtendedTree(t)
	f.root.want(f.root.share("n-d", "n-a", "file", content), 200, "")
	// As r1, and then r2, would do with root's disk: r1/r2/n-d/... becomes r2/n-d/..., and n-d/...
	for i, path := range []string{"r2/n-d/n-a/file", "n-d/n-a/file"} {
		relay := []string{"r1", "r2"}[i]
		f.root.cfAgent(os.Environ(), fmt.Sprintf(`sharedfile_relay(%q)`, relay), "sharedfile_relay_"+relay)
		if f.root.read("shared-files-nodes/"+path) != content || f.root.read("shared-files-nodes/"+path+".medata") == "" {
			t.Error("the file is not at", path)
		}
	}
}
