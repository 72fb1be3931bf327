package rudder

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// startExtendedTree starts root, r1 with its child r2, and r3, with the extended dialect.
func startExtendedTree(t *testing.T, changeBelow ...func(*testRelay)) *relayTree {
	t.Helper()
	f := &relayTree{}
	f.root = startExtended(t, withCertificates("root", "n-a", "n-b", "n-c", "n-d", "n-e", "r1", "r2", "r3"))
	port := f.root.config.HTTPSPort
	below := func(id, host, list string, more ...func(*testRelay)) *testRelay {
		return start(t, id, host, port, list, append(append([]func(*testRelay){extended}, more...), changeBelow...)...)
	}
	f.r1 = below("r1", "127.0.0.2", listOf("n-c c.example r1", "r2 127.0.0.3 r1", "n-d d.example r2"), withUpstream("root", "127.0.0.1"), withCertificates("r2", "n-c", "n-d"))
	f.r2 = below("r2", "127.0.0.3", listOf("n-d d.example r2"), withUpstream("r1", "127.0.0.2"), withCertificates("n-d"))
	f.r3 = below("r3", "127.0.0.4", listOf("n-e e.example r3"), withUpstream("root", "127.0.0.1"), withCertificates("n-e"))
	return f
}

func TestEachRelayGetsItsBranchAndAllIncludesEveryNodeOnce(t *testing.T) {
	f := startExtendedTree(t)
	got := f.root.run("nodes?nodes=n-a,n-d,n-c,nobody&classes=deep,er")
	for id, host := range map[string]string{"n-a": "a.example", "n-c": "c.example", "n-d": "d.example"} {
		got.ended(t, id, 0, "")
		if !slices.Equal(got.lines[id], []string{"ran " + host}) {
			t.Error(id, got.lines[id])
		}
	}
	for testRelay, want := range map[*testRelay]string{
		f.root: "remote run -D deep,er -- a.example\n", f.r1: "remote run -D deep,er -- c.example\n",
		f.r2: "remote run -D deep,er -- d.example\n", f.r3: "",
	} {
		if calls := testRelay.calls(); calls != want {
			t.Errorf("%s was called %q, want %q", testRelay.config.NodeID, calls, want)
		}
	}
	all := f.root.run("all?async=yes")
	for _, id := range []string{"root", "n-a", "n-b", "r1", "n-c", "r2", "n-d", "r3", "n-e"} {
		all.ended(t, id, 0, "")
	}
	all.ended(t, "loop1", 0, "no route")
	all.ended(t, "loop2", 0, "no route")
	all.ended(t, "lost", 0, "no route")
	if len(all.ends) != 12 {
		t.Error(all.events)
	}
}

func TestLostBranchHasEndForEachNode(t *testing.T) {
	f := startExtendedTree(t)
	f.r1.stop()
	got := f.root.run("nodes?nodes=n-a,n-c,n-d,n-e")
	got.ended(t, "n-a", 0, "")
	got.ended(t, "n-e", 0, "")
	got.ended(t, "n-c", 0, "relay r1: ")
	got.ended(t, "n-d", 0, "relay r1: ")
}

func TestRelayIsAuthenticatedByCertificate(t *testing.T) {
	f := startExtendedTree(t)
	imposter := start(t, "r9", "127.0.0.9", f.root.config.HTTPSPort, listOf("n-c c.example r9"), extended, withUpstream("root", "127.0.0.1"))
	list := f.root.read("nodeslist.json")
	f.root.write("nodeslist.json", strings.ReplaceAll(list, "127.0.0.2", "127.0.0.9"))
	if err := f.root.server.Reload(); err != nil {
		t.Fatal(err)
	}
	f.root.run("nodes?nodes=n-c").ended(t, "n-c", 0, "relay r1: ")
	if imposter.calls() != "" {
		t.Error("the imposter got a request")
	}
	f.root.write("nodeslist.json", list)
	withCertificates("r2", "r3")(f.root)
	f.root.want(f.root.call("POST", "system/reload", nil), 200, `{"result":"success","action":"reloadConfiguration"}`)
	f.root.run("nodes?nodes=n-c").ended(t, "n-c", 0, "no certificate of this relay is known")
	withCertificates("r1")(f.root)
	f.root.want(f.root.call("POST", "system/reload", nil), 200, `{"result":"success","action":"reloadConfiguration"}`)
	f.root.run("nodes?nodes=n-c").ended(t, "n-c", 0, "")
}

func TestHangingBranchHasEndAndDelaysNoOther(t *testing.T) {
	f := startExtendedTree(t, script("echo begun; exec sleep 1000"))
	silence := &fakeTimers{}
	f.root.server.afterFunc = silence.afterFunc
	f.r3.write("agent", agent)
	response, err := f.root.client.Get(f.root.base + basePath + "remote-run/nodes?nodes=n-c,n-e")
	if err != nil {
		t.Fatal(err)
	}
	got := parse(t, silence.expireAfter(t, response, `{"node":"n-e","event":"end"`, "n-c: begun\n"))
	got.ended(t, "n-e", 0, "")
	got.ended(t, "n-c", 0, "it has sent nothing for "+f.root.config.BranchSilence.String())
	if !slices.Equal(got.lines["n-c"], []string{"begun"}) {
		t.Error(got.lines)
	}
}

func TestRelayCanReportOnlyItsOwnNodes(t *testing.T) {
	s := startExtended(t, withCertificates("r3"))
	listener, err := tls.Listen("tcp", net.JoinHostPort("127.0.0.4", strconv.Itoa(s.config.HTTPSPort)),
		&tls.Config{Certificates: []tls.Certificate{identityOf("r3").certificate}})
	if err != nil {
		t.Fatal(err)
	}
	liar := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "n-e: too early\n"+`{"node":"n-a","event":"unknown"}`+"\n"+`{"node":"n-e","event":"start"}`+"\nn-a: false\n"+
			"unlabelled\n{broken\n"+`{"node":"n-e","event":"start"}`+"\n"+`{"node":"n-e","event":"other"}`+"\nn-e: true\n"+
			`{"node":"n-e","event":"end","code":4}`+"\nn-e: too late\n"+`{"node":"n-e","event":"end","code":5}`+"\n")
	})}
	go liar.Serve(listener)
	defer liar.Close()
	got := s.run("nodes?nodes=n-a,n-e")
	got.ended(t, "n-a", 0, "")
	got.ended(t, "n-e", 4, "")
	if !slices.Equal(got.lines["n-a"], []string{"ran a.example"}) || !slices.Equal(got.lines["n-e"], []string{"true"}) || len(got.events) != 4 {
		t.Error(got)
	}
}
