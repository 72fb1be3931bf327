package rudder

import (
	"bufio"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"muster.example/gateway/limits"
	"muster.example/services/client/go/mustertest"
)

// relayTree is root, r1 with its child r2, and r3: real relays that authenticate each other.
type relayTree struct{ root, r1, r2, r3 *testRelay }

func startTree(t *testing.T, changeBelow ...func(*testRelay)) *relayTree {
	t.Helper()
	f := &relayTree{}
	f.root = start(t, "root", "127.0.0.1", 0, listOf(lines("root root.example root\n"+deep+broken)...), withCertificates("r1", "r2", "r3"))
	port := f.root.config.HTTPSPort
	f.r1 = start(t, "r1", "127.0.0.2", port, listOf("n-c c.example r1", "r2 127.0.0.3 r1", "n-d d.example r2"),
		append(changeBelow, withCertificates("r2"))...)
	f.r2 = start(t, "r2", "127.0.0.3", port, listOf("n-d d.example r2"), changeBelow...)
	f.r3 = start(t, "r3", "127.0.0.4", port, listOf("n-e e.example r3"), changeBelow...)
	return f
}

func startRoot(t *testing.T, change ...func(*testRelay)) *testRelay {
	t.Helper()
	return start(t, "root", "127.0.0.1", 0, listOf(lines("root root.example root\n"+deep)...), change...)
}

func script(text string) func(*testRelay) {
	return func(s *testRelay) { s.write("agent", "#!/bin/sh\n"+text) }
}

func TestAsynchronousKeepStreamsOutput(t *testing.T) {
	s := startRoot(t)
	got := s.post("remote-run/nodes", "asynchronous=true", "keep_output=true", "classes=class2,class3", "nodes=root")
	s.want(got, 200, "ran root.example\n")
	if got.header["Content-Type"] != nil {
		t.Error("Content-Type", got.header)
	}
	if calls := s.calls(); calls != "remote run -D class2,class3 -- root.example\n" {
		t.Error(calls)
	}
}

func TestAttachedRelayIsRunAsNode(t *testing.T) {
	s := startRoot(t)
	s.want(s.post("remote-run/nodes", "asynchronous=true", "keep_output=true", "nodes=r1"), 200, "ran 127.0.0.2\n")
	if calls := s.calls(); calls != "remote run -- 127.0.0.2\n" {
		t.Error(calls)
	}
}

func TestNodeInPathIsRun(t *testing.T) {
	s := startRoot(t)
	s.want(s.post("remote-run/nodes/n%2Da", "keep_output=true", "nodes=n-b"), 200, "ran a.example\n")
	s.want(s.callAs(s.client, "POST", s.base+basePath+"remote-run/nodes/n-b", strings.NewReader("keep_output=true")), 200, "ran b.example\n")
}

func TestAsynchronousDiscardAnswersImmediatelyAndRuns(t *testing.T) {
	s := startRoot(t)
	s.want(s.post("remote-run/nodes", "asynchronous=true", "nodes=root"), 200, "")
	mustertest.Await(t, "the command is called", func() bool { return s.calls() == "remote run -- root.example\n" })
}

func TestSynchronousRunWaitsForCommand(t *testing.T) {
	s := startRoot(t)
	s.want(s.post("remote-run/nodes", "asynchronous=false", "keep_output=true", "nodes=root,n-a"), 200, "ran root.example\nran a.example\n")
	s.want(s.post("remote-run/nodes", "nodes=n-b"), 200, "")
	if calls := s.calls(); calls != "remote run -- root.example,a.example\nremote run -- b.example\n" {
		t.Error(calls)
	}
}

func TestBranchOutputFollowsLocalOutput(t *testing.T) {
	f := startTree(t)
	f.root.want(f.root.post("remote-run/nodes", "keep_output=true", "conditions=deep,er", "nodes=n-a,n-d,n-c"), 200,
		"ran a.example\nran c.example\nran d.example\n")
	for testRelay, want := range map[*testRelay]string{
		f.root: "remote run -D deep,er -- a.example\n", f.r1: "remote run -D deep,er -- c.example\n",
		f.r2: "remote run -D deep,er -- d.example\n", f.r3: "",
	} {
		if got := testRelay.calls(); got != want {
			t.Errorf("%s was called %q, want %q", testRelay.config.NodeID, got, want)
		}
	}
}

func TestAllRunsEveryNodeOnce(t *testing.T) {
	f := startTree(t)
	got := f.root.post("remote-run/all", "asynchronous=true", "keep_output=true")
	found := strings.Split(strings.TrimSuffix(got.body, "\n"), "\n")
	slices.Sort(found)
	want := []string{"ran 127.0.0.2", "ran 127.0.0.3", "ran 127.0.0.4", "ran a.example", "ran b.example", "ran c.example",
		"ran d.example", "ran e.example", "ran root.example"}
	if got.code != 200 || !slices.Equal(found, want) {
		t.Errorf("%d %q", got.code, found)
	}
	if calls := f.root.calls(); calls != "remote run -- a.example,b.example,127.0.0.2,127.0.0.4,root.example\n" {
		t.Error(calls)
	}
}

func TestRelayWithWrongCertificateIsIgnored(t *testing.T) {
	f := startTree(t)
	imposter := start(t, "r9", "127.0.0.9", f.root.config.HTTPSPort, listOf("n-c c.example r9"))
	f.root.write("nodeslist.json", strings.ReplaceAll(listOf(lines("root root.example root\n"+deep)...), "127.0.0.2", "127.0.0.9"))
	if err := f.root.server.Reload(); err != nil {
		t.Fatal(err)
	}
	f.root.want(f.root.post("remote-run/nodes", "keep_output=true", "nodes=n-a,n-c"), 200, "ran a.example\n")
	if imposter.calls() != "" {
		t.Error("the imposter got a request")
	}
}

func TestRelayWithoutCertificateIsIgnoredUntilItIsRestored(t *testing.T) {
	f := startTree(t)
	withCertificates("r2", "r3")(f.root)
	f.root.want(f.root.call("POST", "system/reload", nil), 200, `{"result":"success","action":"reloadConfiguration"}`)
	f.root.want(f.root.post("remote-run/nodes", "keep_output=true", "nodes=n-a,n-c"), 200, "ran a.example\n")
	if f.r1.calls() != "" {
		t.Error("the relay got a request")
	}
	withCertificates("r1")(f.root)
	f.root.want(f.root.call("POST", "system/reload", nil), 200, `{"result":"success","action":"reloadConfiguration"}`)
	f.root.want(f.root.post("remote-run/nodes", "keep_output=true", "nodes=n-a,n-c"), 200, "ran a.example\nran c.example\n")
}

func TestInvalidFormFailsWithReason(t *testing.T) {
	s := startRoot(t)
	for form, want := range map[string]string{
		"nodes=root&classes=class~1,class2":               "invalid condition: class~1, should match ^[a-zA-Z0-9][a-zA-Z0-9_]*$",
		"nodes=root&classes=class2,":                      "invalid condition: , should match ^[a-zA-Z0-9][a-zA-Z0-9_]*$",
		"nodes=root&conditions=$(reboot)":                 "invalid condition: $(reboot), should match ^[a-zA-Z0-9][a-zA-Z0-9_]*$",
		"nodes=root&conditions=a;b":                       "invalid condition: a;b, should match ^[a-zA-Z0-9][a-zA-Z0-9_]*$",
		"nodes=root&classes=" + strings.Repeat("x", 1025): "invalid condition: more than the maximum of 1024 characters",
		"nodes=root&asynchronous=yes":                     "invalid asynchronous: yes, should be true or false",
		"nodes=root&keep_output=TRUE":                     "invalid keep_output: TRUE, should be true or false",
		"keep_output=true":                                "Missing nodes",
	} {
		got := s.post("remote-run/nodes", strings.Split(form, "&")...)
		s.want(got, 400, want)
		if kind := got.header.Get("Content-Type"); kind != "text/plain; charset=utf-8" {
			t.Error(kind)
		}
	}
	if s.calls() != "" {
		t.Error(s.calls())
	}
}

func TestConditionsOverrideClasses(t *testing.T) {
	f := startTree(t)
	f.root.want(f.root.post("remote-run/nodes", "nodes=n-c", "conditions=new", "classes=old~"), 200, "")
	if calls := f.r1.calls(); calls != "remote run -D new -- c.example\n" { // r1 was sent `classes`
		t.Error(calls)
	}
	run, err := parseRun("nodes", url.Values{"nodes": {"x"}, "conditions": {""}, "classes": {"old"}})
	if err != nil || len(run.conditions) != 0 {
		t.Error(run, err)
	}
	if sent := (&remoteRun{conditions: []string{"new"}}).form(branch{ids: []string{"a", "b"}}).Encode(); sent !=
		"asynchronous=false&classes=new&keep_output=false&nodes=a%2Cb" {
		t.Error(sent)
	}
}

func TestUnknownNodesAreIgnored(t *testing.T) {
	s := start(t, "root", "127.0.0.1", 0, listOf(lines("n-a a.example root"+broken)...))
	s.want(s.post("remote-run/nodes", "keep_output=true", "nodes="), 200, "")
	s.want(s.post("remote-run/nodes", "keep_output=true", "nodes=nobody,loop1, n-a"), 200, "")
	s.want(s.post("remote-run/nodes/nobody", "keep_output=true"), 200, "")
	if s.calls() != "" {
		t.Error("the command was called without a host", s.calls())
	}
	s.want(s.post("remote-run/nodes", "keep_output=true", "nodes=nobody,n-a"), 200, "ran a.example\n")
}

func TestRunInLoopEnds(t *testing.T) {
	// The child relay's host is this relay, with the expected certificate.
	s := start(t, "root", "127.0.0.1", 0, listOf("n-a a.example root", "me 127.0.0.1 root", "n-x x me"), withCertificates("me"), func(s *testRelay) {
		s.config.CertificateFile, s.config.KeyFile = s.write("me.pem", identityOf("me").pem()), s.write("me.key", identityOf("me").keyPEM())
	})
	s.want(s.post("remote-run/nodes", "keep_output=true", "nodes=n-a,n-x"), 200, "ran a.example\n")
}

func TestHangingBranchDelaysNoOther(t *testing.T) {
	f := startTree(t, script("sleep 1000"))
	silence := &fakeTimers{}
	f.root.server.afterFunc = silence.afterFunc
	f.r3.write("agent", agent)
	response, err := f.root.client.PostForm(f.root.base+basePath+"remote-run/nodes",
		url.Values{"keep_output": {"true"}, "asynchronous": {"true"}, "nodes": {"n-c,n-e"}})
	if err != nil {
		t.Fatal(err)
	}
	if got := silence.expireAfter(t, response, "ran e.example\n"); response.StatusCode != 200 || got != "ran e.example\n" {
		t.Error(response.Status, got)
	}
}

func TestLinesOfBranchesAreNotMixed(t *testing.T) {
	f := startTree(t, script(`for last; do :; done
i=0
while [ $i -lt 400 ]; do printf "$last-"; printf "$i-"; printf "$last\n"; i=$((i+1)); done`))
	got := f.root.post("remote-run/nodes", "keep_output=true", "asynchronous=true", "nodes=n-c,n-d,n-e")
	count := map[string]int{}
	for line := range strings.Lines(got.body) {
		part := strings.Split(strings.TrimSuffix(line, "\n"), "-")
		if len(part) != 3 || part[0] != part[2] {
			t.Fatalf("mixed: %q", line)
		}
		count[part[0]]++
	}
	if len(count) != 3 || count["c.example"] != 400 || count["d.example"] != 400 || count["e.example"] != 400 {
		t.Error(count)
	}
}

func TestOutputIsStreamedWhileCommandRuns(t *testing.T) {
	s := startRoot(t, script(`echo first; while [ ! -e "$0.go" ]; do sleep 0.05; done; echo second`))
	response, err := s.client.Post(s.base+basePath+"remote-run/nodes/root", "application/x-www-form-urlencoded",
		strings.NewReader("asynchronous=true&keep_output=true"))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	reader := bufio.NewReader(response.Body)
	if line, err := reader.ReadString('\n'); line != "first\n" {
		t.Fatal(line, err)
	}
	s.write("agent.go", "")
	if rest, err := io.ReadAll(reader); string(rest) != "second\n" {
		t.Error(string(rest), err)
	}
}

func TestProcessGroupEndsWithClient(t *testing.T) {
	s := startRoot(t, script(`trap '' PIPE
(trap 'echo >"$0.ended"; exit' TERM; echo begun; while :; do sleep 0.05; done) & wait`))
	response, err := s.client.Post(s.base+basePath+"remote-run/nodes/root", "application/x-www-form-urlencoded",
		strings.NewReader("keep_output=true"))
	if err != nil {
		t.Fatal(err)
	}
	if line, _ := bufio.NewReader(response.Body).ReadString('\n'); line != "begun\n" {
		t.Fatal(line)
	}
	response.Body.Close()
	mustertest.Await(t, "the child gets SIGTERM", func() bool { return s.read("agent.ended") != "" })
	mustertest.Await(t, "the run has ended", func() bool { return len(s.server.runs) == 0 })
}

func TestCommandThatCannotStartAbortsAnswer(t *testing.T) {
	s := startRoot(t, func(s *testRelay) { s.config.RemoteRunCommand = []string{s.folder + "/none"} })
	response, err := s.client.Post(s.base+basePath+"remote-run/nodes/root", "application/x-www-form-urlencoded",
		strings.NewReader("keep_output=true"))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if _, err := io.ReadAll(response.Body); response.StatusCode != 200 || err == nil {
		t.Error(response.Status, err)
	}
}

func TestStrictAnswerHasNoExitCode(t *testing.T) {
	s := startRoot(t, script("echo broken; exit 3"))
	s.want(s.post("remote-run/nodes/root", "keep_output=true"), 200, "broken\n")
}

func TestSimultaneousRemoteRunsAreBounded(t *testing.T) {
	s := startRoot(t, func(s *testRelay) { s.config.RemoteRuns = 1 },
		script(`echo "$@" >>"$0.calls"; while [ ! -e "$0.go" ]; do sleep 0.05; done`))
	s.want(s.post("remote-run/nodes/n-a", "asynchronous=true"), 200, "")
	mustertest.Await(t, "the first run has started", func() bool { return s.calls() != "" })
	second := make(chan reply)
	go func() { second <- s.post("remote-run/nodes/n-b") }()
	select {
	case got := <-second:
		t.Error("the second did not wait", got)
	case <-time.After(100 * time.Millisecond):
	}
	s.write("agent.go", "")
	s.want(<-second, 200, "")
}

func TestRemoteRunCanBeDisabled(t *testing.T) {
	s := startRoot(t, func(s *testRelay) { s.config.RemoteRun = false })
	s.want(s.post("remote-run/all"), 404, "NOT FOUND")
}

func TestManyHostsAreSplitIntoCommands(t *testing.T) {
	s := startRoot(t)
	hosts := make([]string, 3000)
	for i := range hosts {
		hosts[i] = strings.Repeat("h", 60)
	}
	var output strings.Builder
	err := trigger(t.Context(), s.config.RemoteRunCommand, nil, hosts, io.Discard, func(lines []byte) bool {
		output.Write(lines)
		return true
	})
	if got := strings.Count(output.String(), "\n"); err != nil || got != 3000 || strings.Count(s.calls(), "\n") != 2 {
		t.Error(got, strings.Count(s.calls(), "\n"), err)
	}
}

func TestLongLinesAreBrokenAndLastLineIsTerminated(t *testing.T) {
	var got []string
	err := eachLine(strings.NewReader("short\n"+strings.Repeat("x", limits.RunLine+5)+"\nend"), limits.RunLine, func(lines []byte) bool {
		got = append(got, string(lines))
		return true
	})
	all := strings.Join(got, "")
	if want := "short\n" + strings.Repeat("x", limits.RunLine) + "\nxxxxx\nend\n"; err != nil || all != want {
		t.Error(len(all), len(want), err)
	}
}

func TestInvalidFormHasNoRoute(t *testing.T) {
	s := startRoot(t)
	s.want(s.call("POST", "remote-run/nodes", strings.NewReader(`{"nodes":"root"}`), "Content-Type", "application/json"), 404, "NOT FOUND")
	s.want(s.call("POST", "remote-run/nodes", strings.NewReader("nodes=%zz")), 404, "NOT FOUND")
	s.want(s.call("POST", "remote-run/nodes", strings.NewReader("nodes="), "Content-Type", "application/x-www-form-urlencoded; charset=utf-8"), 200, "")
	s.want(s.call("POST", "remote-run/all", io.LimitReader(strings.NewReader("nodes=root"), 10)), 411, "LENGTH REQUIRED")
	s.want(s.call("POST", "remote-run/all", strings.NewReader(strings.Repeat("x", int(limits.RunForm)+1))), 413, "PAYLOAD TOO LARGE")
	s.want(s.call(http.MethodGet, "remote-run/all", nil), 404, "NOT FOUND")
}
