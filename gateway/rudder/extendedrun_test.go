package rudder

import (
	"bufio"
	"crypto/tls"
	"encoding/json"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"muster.example/gateway/limits"
	"muster.example/services/client/go/mustertest"
)

// startExtended starts root with the extended dialect, without working child relays.
func startExtended(t *testing.T, change ...func(*testRelay)) *testRelay {
	t.Helper()
	return start(t, "root", "127.0.0.1", 0, listOf(lines("root root.example root\n"+deep+broken)...),
		append([]func(*testRelay){extended}, change...)...)
}

// runAnswer is the parsed answer of a remote run.
type runAnswer struct {
	events []string            // of nodes, in order: "n-a start"
	lines  map[string][]string // without labels
	ends   map[string]endRecord
}

// parse parses an answer and checks its format.
func parse(t *testing.T, body string) *runAnswer {
	t.Helper()
	got := &runAnswer{lines: map[string][]string{}, ends: map[string]endRecord{}}
	begun := map[string]bool{}
	for line := range strings.Lines(body) {
		if !strings.HasPrefix(line, "{") {
			node, text, labelled := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
			if !labelled || !begun[node] {
				t.Fatalf("a line of a node that is not running: %q", line)
			}
			got.lines[node] = append(got.lines[node], text)
			continue
		}
		r := record{endRecord: &endRecord{Duration: -1}}
		if err := json.Unmarshal([]byte(line), &r); err != nil || !utf8.ValidString(line) {
			t.Fatalf("%q: %v", line, err)
		}
		got.events = append(got.events, r.Node+" "+r.Event)
		switch {
		case r.Event == "start" && !begun[r.Node]:
			begun[r.Node] = true
		case r.Event == "end" && begun[r.Node]:
			got.ends[r.Node] = *r.endRecord
			delete(begun, r.Node)
		case r.Event != "unknown":
			t.Fatalf("out of order: %q", line)
		}
	}
	if len(begun) > 0 {
		t.Error("no end of", begun)
	}
	return got
}

// run requests a remote run and parses the answer.
func (s *testRelay) run(path string) *runAnswer {
	s.t.Helper()
	got := s.call("GET", "remote-run/"+path, nil)
	if got.code != 200 {
		s.t.Fatal(got)
	}
	return parse(s.t, got.body)
}

func (g *runAnswer) ended(t *testing.T, node string, code int, fault string) {
	t.Helper()
	e, found := g.ends[node]
	switch {
	case !found:
		t.Errorf("no end of %s: %v", node, g.events)
	case fault == "" && (e.Error != nil || e.Code == nil || *e.Code != code):
		t.Errorf("%s: %+v", node, e)
	case fault != "" && (e.Error == nil || !strings.Contains(*e.Error, fault) || e.Code != nil):
		t.Errorf("%s: %+v, want %q", node, e, fault)
	}
}

func TestLinesBetweenRecordsAreLabelled(t *testing.T) {
	s := startExtended(t)
	got := s.call("GET", "remote-run/node/n%2Da?classes=class2,class3", nil)
	first, rest, _ := strings.Cut(got.body, "\n")
	second, last, _ := strings.Cut(rest, "\n")
	if got.code != 200 || first != `{"node":"n-a","event":"start"}` || second != "n-a: ran a.example" ||
		!strings.HasPrefix(last, `{"node":"n-a","event":"end","code":0,"duration_ms":`) || !strings.HasSuffix(last, `,"stderr":"","error":null}`+"\n") {
		t.Error(got)
	}
	if calls := s.calls(); calls != "remote run -D class2,class3 -- a.example\n" {
		t.Error(calls)
	}
	s.want(s.callAs(s.client, "GET", s.base+basePath+"remote-run/nodes?nodes=", nil), 200, "")
}

func TestEndRecordHasExitCodeAndStderr(t *testing.T) {
	s := startExtended(t, script(`printf 'out\377put {"node":"n-a"}\nlast'; printf 'bad\377 "quoted"\n\001' >&2; exit 3`))
	got := s.run("node/n-a")
	got.ended(t, "n-a", 3, "")
	if e := got.ends["n-a"]; e.Stderr != "bad\uFFFD \"quoted\"\n\x01" || e.Duration < 0 {
		t.Errorf("%+v", e)
	}
	if want := []string{"out\xffput {\"node\":\"n-a\"}", "last"}; !slices.Equal(got.lines["n-a"], want) {
		t.Errorf("%q", got.lines)
	}
}

func TestStderrInRecordIsBounded(t *testing.T) {
	s := startExtended(t, script(`head -c 100000 /dev/zero >&2`))
	if e := s.run("node/n-a").ends["n-a"]; len(e.Stderr) != limits.RunStderr+len("[cut]") || !strings.HasSuffix(e.Stderr, "\x00[cut]") {
		t.Error(len(e.Stderr))
	}
}

func TestDiscardDropsOutputButNotRecords(t *testing.T) {
	s := startExtended(t, script(`echo said; exit 2`))
	got := s.run("nodes?nodes=n-a,n-b&output=discard&async=no")
	got.ended(t, "n-a", 2, "")
	got.ended(t, "n-b", 2, "")
	if len(got.lines) != 0 {
		t.Error(got.lines)
	}
}

func TestAsyncDiscardAnswersEmptyImmediately(t *testing.T) {
	s := startExtended(t, script(`while [ ! -e "$0.go" ]; do sleep 0.02; done; echo "$@" >>"$0.calls"`))
	s.want(s.call("GET", "remote-run/nodes?nodes=n-a,nobody&output=discard&async=yes", nil), 200, "")
	s.write("agent.go", "")
	mustertest.Await(t, "the command ran", func() bool { return s.calls() == "remote run -- a.example\n" })
}

func TestAsyncKeepStreamsAndOutlivesClient(t *testing.T) {
	s := startExtended(t, script(`echo first; while [ ! -e "$0.go" ]; do sleep 0.02; done; echo over >"$0.over"`))
	response, err := s.client.Get(s.base + basePath + "remote-run/node/n-a?async=yes")
	if err != nil {
		t.Fatal(err)
	}
	reader := bufio.NewReader(response.Body)
	for _, want := range []string{`{"node":"n-a","event":"start"}` + "\n", "n-a: first\n"} {
		if line, err := reader.ReadString('\n'); line != want {
			t.Fatal(line, err)
		}
	}
	response.Body.Close()
	s.write("agent.go", "")
	mustertest.Await(t, "the command ends", func() bool { return s.read("agent.over") != "" })
	mustertest.Await(t, "the run has ended", func() bool { return len(s.server.runs) == 0 })
}

func TestSynchronousRunEndsWithClient(t *testing.T) {
	s := startExtended(t, script(`trap 'echo >"$0.ended"; exit' TERM; echo begun; while :; do sleep 0.02; done`))
	response, err := s.client.Get(s.base + basePath + "remote-run/node/n-a")
	if err != nil {
		t.Fatal(err)
	}
	for reader, line := bufio.NewReader(response.Body), ""; line != "n-a: begun\n"; {
		if line, err = reader.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	response.Body.Close()
	mustertest.Await(t, "the command gets SIGTERM", func() bool { return s.read("agent.ended") != "" })
	mustertest.Await(t, "the run has ended", func() bool { return len(s.server.runs) == 0 })
}

func TestStalledReaderIsDisconnected(t *testing.T) {
	s := startExtended(t, script(`exec cat /dev/zero`), withShortTimeout)
	conn, err := tls.Dial("tcp", strings.TrimPrefix(s.base, "https://"),
		&tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{identityOf("root").certificate}})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "GET "+basePath+"remote-run/node/n-a HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	mustertest.Await(t, "the run has started", func() bool { return len(s.server.runs) == 1 })
	mustertest.Await(t, "the run has ended", func() bool { return len(s.server.runs) == 0 })
}

// Output is not collected in memory for a client that does not read: the command waits, until the client is disconnected.
func TestSlowReaderHoldsUpSource(t *testing.T) {
	s := startExtended(t, script(`head -c 100000000 /dev/zero && echo >"$0.over"`), func(s *testRelay) { s.config.ClientSilence = 2 * time.Second })
	conn, err := tls.Dial("tcp", strings.TrimPrefix(s.base, "https://"),
		&tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{identityOf("root").certificate}})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "GET "+basePath+"remote-run/node/n-a HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	mustertest.Await(t, "the run has started", func() bool { return len(s.server.runs) == 1 })
	mustertest.Await(t, "the run has ended", func() bool { return len(s.server.runs) == 0 })
	if s.read("agent.over") != "" {
		t.Error("the command has written everything")
	}
}

func TestUnreachableNodesHaveRecords(t *testing.T) {
	s := startExtended(t)
	got := s.run("nodes?nodes=nobody,n-a,loop1,lost")
	got.ended(t, "n-a", 0, "")
	got.ended(t, "loop1", 0, "no route from this relay")
	got.ended(t, "lost", 0, "no route from this relay")
	if !slices.Contains(got.events, "nobody unknown") || got.ends["nobody"].Error != nil {
		t.Error(got.events)
	}
	s.want(s.call("GET", "remote-run/node/nobody", nil), 200, `{"node":"nobody","event":"unknown"}`+"\n")
}

func TestInvalidQueryFailsWithField(t *testing.T) {
	s := startExtended(t)
	for query, field := range map[string]string{
		"nodes?nodes=n-a&output=KEEP": "output", "nodes?nodes=n-a&output=": "output", "all?output=true": "output",
		"nodes?nodes=n-a&async=true": "async", "nodes?nodes=n-a&async=Yes": "async", "all?async=yes&async=no": "async",
		"nodes?nodes=n-a&classes=a~b": "classes", "nodes?nodes=n-a&classes=a,": "classes", "all?classes=$(reboot)": "classes",
		"all?classes=" + strings.Repeat("x", 1025): "classes",
		"nodes": "nodes", "nodes?nodes=a,,b": "nodes", "nodes?nodes=..": "nodes", "nodes?nodes=a%2Fb": "nodes",
		"nodes?nodes=" + strings.Repeat("x", 4096): "nodes", "nodes?nodes=n-a&nodes=n-b": "nodes", "all?nodes=n-a": "nodes",
		"nodes?nodes=n-a&keep_output=true": "keep_output", "node/%2e%2e": "uuid", "node/a%00b": "uuid",
		"node/" + strings.Repeat("x", 4096): "uuid",
	} {
		got := s.call("GET", "remote-run/"+query, nil)
		if got.code != 400 || !strings.HasPrefix(got.body, field+": ") || got.header.Get("Content-Type") != "text/plain; charset=utf-8" {
			t.Errorf("%.60s: %s", query, got)
		}
	}
	if got := s.call("GET", "remote-run/all?output=%zz", nil); got.code != 400 {
		t.Error(got)
	}
	for _, method := range []string{"POST", "PUT", "HEAD", "DELETE"} {
		if got := s.call(method, "remote-run/all", nil); got.code != 405 || got.header.Get("Allow") != "GET" {
			t.Error(method, got)
		}
	}
	for _, path := range []string{"remote-run/nodes/n-a", "remote-run/node", "remote-run/node/", "remote-run", "remote-run/all/x"} {
		s.want(s.call("GET", path, nil), 404, "NOT FOUND")
	}
	if s.calls() != "" {
		t.Error(s.calls())
	}
}

func TestCommandThatCannotStartFailsItsNodes(t *testing.T) {
	s := startExtended(t, func(s *testRelay) { s.config.RemoteRunCommand = []string{s.folder + "/none"} })
	got := s.run("nodes?nodes=n-a,n-b")
	got.ended(t, "n-a", 0, "cannot be started")
	got.ended(t, "n-b", 0, "cannot be started")
}

func TestRunBeyondTimeLimitHasReason(t *testing.T) {
	s := startExtended(t, script("echo begun; exec sleep 1000"), func(s *testRelay) { s.config.RemoteRunTime = 300 * time.Millisecond })
	s.run("node/n-a").ended(t, "n-a", 0, "took longer")
	killed := startExtended(t, script("kill -9 $$"))
	killed.run("node/n-a").ended(t, "n-a", 0, "signal killed")
}

func TestLongListsAreSplit(t *testing.T) {
	b := branch{}
	for i := range 5000 {
		b.ids = append(b.ids, "0123456789-0123456789-0123456789-"+strconv.Itoa(i))
	}
	count := 0
	for _, part := range b.parts() {
		if count += len(part); len(strings.Join(part, "%2C")) > int(limits.RunQuery) {
			t.Error(len(part))
		}
	}
	if count != 5000 || len((branch{all: true}).parts()) != 1 {
		t.Error(count)
	}
}

func TestExtendedRemoteRunRequiresPolicyServerAddressAndCertificate(t *testing.T) {
	s := start(t, "r1", "127.0.0.1", 0, listOf("n-c c.example r1"), extended, withUpstream("root", "127.0.0.1"), withCertificates("n-c"))
	for id, want := range map[string]int{"": 403, "n-c": 403, "stranger": 403, "root": 200, "r1": 200} {
		if got := s.callAs(s.clientOf(id), "GET", s.base+basePath+"remote-run/nodes?nodes=", nil); got.code != want {
			t.Errorf("%q: %s", id, got)
		}
	}
	// For remote clients the address counts, too; a relay's own certificate is accepted on its own machine only.
	s.config.PolicyServer = []string{"192.0.2.1"}
	var err error
	if s.server.networks, err = parseNetworks(&s.config); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		remote, id string
		want       int
	}{{"192.0.2.1:9", "root", 200}, {"192.0.2.1:9", "r1", 403}, {"192.0.2.1:9", "n-c", 403}, {"192.0.2.1:9", "", 403}, {"192.0.2.2:9", "root", 403}} {
		if got := s.codeFrom("GET", "remote-run/nodes?nodes=", c.remote, c.id); got != c.want {
			t.Errorf("%s %q: %d, want %d", c.remote, c.id, got, c.want)
		}
	}
}

func TestRemoteRunCanBeDisabledInExtendedDialect(t *testing.T) {
	s := startExtended(t, func(s *testRelay) { s.config.RemoteRun = false })
	s.want(s.call("GET", "remote-run/all", nil), 404, "remote run is disabled")
}
