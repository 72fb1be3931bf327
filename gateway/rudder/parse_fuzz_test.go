package rudder

import (
	"bufio"
	"bytes"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"math/big"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
	"time"
	"unicode/utf8"

	"muster.example/gateway/config"
	"muster.example/gateway/limits"
)

// headerBlock returns a block that is accepted; `host` is its longest value.
func headerBlock(host string) string {
	key := x509.MarshalPKCS1PublicKey(&rsa.PublicKey{N: new(big.Int).SetBit(big.NewInt(1), 1023, 1), E: 65537})
	return "header=" + signatureFormat + "\nalgorithm=sha256\ndigest=00FF\nhash_value=" + strings.Repeat("aB", 32) + "\nshort_pubkey=" +
		base64.StdEncoding.EncodeToString(key) + "\nhostname=" + host + "\nkeydate=2026-11-23\nkeyid=1\nother=x\n"
}

// A header block is refused, or its stored form is read as the same values.
func FuzzHeaderBlockSurvivesStorage(f *testing.F) {
	f.Add([]byte(headerBlock("a.example") + "\ncontent"))
	f.Add([]byte(headerBlock("\u2028=\r") + "expires=-1"))
	rest := len(headerBlock("")) - len("other=x\n")
	f.Add([]byte(headerBlock(strings.Repeat("h", int(limits.ShareHead)-rest-10))[:limits.ShareHead-10-1] + "\n\n")) // with an expiry it is too long
	f.Add([]byte("header=rudder-signature-v1\nheader=x\n\n"))
	f.Fuzz(func(t *testing.T, upload []byte) {
		m, err := readBlock(bufio.NewReaderSize(bytes.NewReader(upload), int(limits.ShareHead)))
		if err != nil {
			if !utf8.ValidString(err.Error()) || len(err.Error()) > 1024+len(upload) {
				t.Errorf("%q", err)
			}
			return
		}
		if m.expires, err = expiry(time.Now(), "1h"); err != nil {
			t.Fatal(err)
		}
		again, err := readMetadata(strings.NewReader(m.text()))
		if err != nil {
			t.Fatalf("%v in the stored form of %q", err, upload)
		}
		if again.text() != m.text() || again.expires != m.expires || !again.key.Equal(m.key) || !bytes.Equal(again.signature, m.signature) {
			t.Errorf("%q became %q", m.text(), again.text())
		}
	})
}

// A remote run is refused, or the request for the next relay has the same meaning; conditions are plain words.
func FuzzRemoteRunSurvivesForwarding(f *testing.F) {
	f.Add("all", "classes=a,b&asynchronous=true&keep_output=false", true)
	f.Add("nodes", "nodes=a,b,,c&conditions=x_1&output=discard&async=yes", false)
	f.Add("nodes/x", "classes=%2D%2Dx", false)
	f.Add("nodes", "nodes=&output=keep&classes=", true)
	f.Fuzz(func(t *testing.T, target, text string, extended bool) {
		query, err := url.ParseQuery(text)
		if err != nil {
			return
		}
		id, single := strings.CutPrefix(target, "nodes/")
		if !single {
			id = ""
		} else if id == "" {
			return
		}
		parse := func(query url.Values, id string) (*remoteRun, error) {
			if extended {
				return parseQuery(target == "all", id, query)
			}
			return parseRun(target, query)
		}
		run, err := parse(query, id)
		if err != nil {
			return
		}
		if slices.ContainsFunc(run.conditions, func(c string) bool {
			return !conditionRule.MatchString(c) || strings.HasPrefix(c, "-") || len(c) > limits.Condition
		}) ||
			extended && slices.ContainsFunc(run.nodes, func(node string) bool { return !isName(node) }) {
			t.Fatalf("%+v", run)
		}
		target = "nodes"
		forwarded := run.form(branch{all: run.all, ids: run.nodes})
		if run.all {
			target = "all"
		}
		if extended {
			ids := run.nodes
			if ids == nil && !run.all {
				ids = []string{}
			}
			if forwarded, err = url.ParseQuery(run.query(ids)); err != nil {
				t.Fatal(err)
			}
		}
		if again, err := parse(forwarded, ""); err != nil || !reflect.DeepEqual(again, run) {
			t.Errorf("%+v became %+v through %v: %v", run, again, forwarded, err)
		}
	})
}

// The parts of a nodes list agree with each other about every node, whatever loops and gaps it has.
func FuzzNodesListIsConsistent(f *testing.F) {
	f.Add([]byte(`{"n":{"hostname":"n","policy-server":"r1"},"r1":{"hostname":"r","policy-server":"root"},"a":{"hostname":"a","policy-server":"a"}}`))
	f.Add([]byte(`{"":{"hostname":"x","policy-server":"root","key-hash":"sha256:00"}}`))
	f.Add([]byte(`{"root":{"hostname":"x","policy-server":"root"},"n":{"hostname":"x","policy-server":"lost"}}`))
	f.Add([]byte(`null`))
	path := filepath.Join(f.TempDir(), "nodeslist.json")
	f.Fuzz(func(t *testing.T, list []byte) {
		if err := os.WriteFile(path, list, 0o600); err != nil {
			t.Fatal(err)
		}
		known, err := loadTree(rootID, path)
		if err != nil {
			return
		}
		local, branches, lost := known.split(append(known.ids(), known.ids()...))
		sum := len(local) + len(lost)
		for _, ids := range branches {
			sum += len(ids)
		}
		if sum != len(known.nodes) || !slices.Equal(slices.Sorted(slices.Values(local)), known.children()) {
			t.Errorf("%d of %d nodes: %v %v %v", sum, len(known.nodes), local, branches, lost)
		}
		for _, id := range known.ids() {
			hop, found := known.nextHop(id)
			route, routed := known.route(id)
			if found != routed || len(route) > limits.Depth || found && hop != append(route, "")[0] || found && slices.Contains(lost, id) {
				t.Errorf("%q: next hop %q %v, route %q %v", id, hop, found, route, routed)
			}
			if hash, usable := parseKeyHash(known.nodes[id].KeyHash); usable && len(hash.sum) != hash.algorithm.Size() {
				t.Errorf("%q: %d bytes", known.nodes[id].KeyHash, len(hash.sum))
			}
		}
	})
}

// A time to live is refused, or ends in the future; the seconds that a relay forwards mean the same.
func FuzzTimeToLive(f *testing.F) {
	for _, text := range []string{"0", "1h 30m", "999ms1us", "18446744073709551615", "9223372036854775807s", "1y1M1w", " 5 ", "1 h", "1ſ", "-1", "9007199254740993ns"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		seconds, err := parseTTL(text)
		if err != nil {
			return
		}
		if again, err := parseTTL(strconv.FormatUint(seconds, 10)); err != nil || again != seconds {
			t.Errorf("%q is %d, then %d: %v", text, seconds, again, err)
		}
		now := time.Now()
		if ends, err := expiry(now, text); err == nil && ends < now.Unix() {
			t.Errorf("%q ended at %d", text, ends)
		}
	})
}

// Lines contain the bytes of their source in order, have an end, and are not longer than the limit.
func FuzzLinesKeepTheirBytes(f *testing.F) {
	f.Add([]byte("a\nbc"), uint8(2), false)
	f.Add([]byte("\n\n"), uint8(1), true)
	f.Add(bytes.Repeat([]byte("x"), 1000), uint8(255), true)
	f.Fuzz(func(t *testing.T, source []byte, limit uint8, slow bool) {
		from := iotest.DataErrReader(bytes.NewReader(source))
		if slow {
			from = iotest.OneByteReader(bytes.NewReader(source))
		}
		var whole []byte
		split := &splitter{emit: func(lines []byte) bool { return len(lines) > 0 && lines[len(lines)-1] == '\n' }}
		err := eachLine(from, int(limit)+1, func(lines []byte) bool {
			if len(lines) > int(limit)+2 || lines[len(lines)-1] != '\n' || !split.write(lines) {
				t.Errorf("%q", lines)
			}
			whole = append(whole, lines...)
			return true
		})
		if err != nil || !split.flush() || len(split.rest) != 0 {
			t.Error(err)
		}
		rest := source
		for _, c := range whole { // an additional byte can only be the end of a line
			if len(rest) > 0 && rest[0] == c {
				rest = rest[1:]
			} else if c != '\n' {
				t.Fatalf("%q became %q", source, whole)
			}
		}
		if len(rest) > 0 {
			t.Errorf("%q is missing", rest)
		}
	})
}

// Whatever the policy server answers: an upload ends in a known state, and until then its content is kept.
func FuzzOutcomeOfPolicyServer(f *testing.F) {
	f.Add(200, []byte(`{"id":"x","state":"delivered"}`), "x")
	f.Add(202, []byte(`{"id":"x","state":"pending","reason":"\u0000"}`), "")
	f.Add(202, []byte(`{"id":"x","state":"lost"}`), "")
	f.Add(200, []byte(`{"id":"../x","state":"refused"}`), "x")
	f.Add(404, []byte("\xff"), "")
	f.Add(429, []byte{}, "")
	log := slog.New(slog.DiscardHandler)
	files, err := openStore(&config.Rudder{Dialect: "extended", SharedFilesNodes: f.TempDir()}, log)
	if err == nil {
		err = files.root.MkdirAll(spoolFolder, 0o700)
	}
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, code int, body []byte, upstreamID string) {
		if upstreamID != "" && !isName(upstreamID) {
			return
		}
		s := &Server{spool: &spool{store: files, log: log, uploads: map[string]*upload{}, newest: map[[3]string]*upload{}, counts: map[string]int{}}}
		u := &upload{ID: "0123", State: statePending, UpstreamID: upstreamID, done: make(chan struct{}), queue: &queue{pending: 1}}
		if err := errors.Join(files.root.WriteFile(u.file(), []byte("content"), 0o600), s.spool.write(u)); err != nil {
			t.Fatal(err)
		}
		ended := s.recordOutcome(u, upstreamID, &http.Response{StatusCode: code, Body: io.NopCloser(bytes.NewReader(body))}, nil)
		text, err := files.root.ReadFile(u.file() + ".json")
		var stored upload
		if err = errors.Join(err, json.Unmarshal(text, &stored)); err != nil {
			t.Fatal(err)
		}
		_, missing := files.root.Stat(u.file())
		known := slices.Contains([]string{statePending, stateDelivered, stateRefused, stateExpired}, u.State)
		if !known || stored.State != u.State || ended != (u.State != statePending) || ended != (missing != nil) ||
			u.UpstreamID != "" && !isName(u.UpstreamID) || int64(len(text)) > 1024+6*limits.ShareHead {
			t.Errorf("%d %q: ended %v, content %v, %+v", code, body, ended, missing, u)
		}
	})
}
