package rudder

import (
	"bytes"
	"encoding/json"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

func FuzzShareStaysInItsFolder(f *testing.F) {
	f.Add("POST", "n-b", "file", "source-uuid=n-a&signature=00&ttl=1h")
	f.Add("HEAD", "n-b", "file.medata", "source-uuid=..&hash="+sumOf(""))
	f.Add("POST", "../..", "a/b", "source-uuid=.spool&signature=00")
	f.Fuzz(func(t *testing.T, method, target, file, text string) {
		query, err := url.ParseQuery(text)
		if err != nil {
			return
		}
		h, err := parseShare(method, target, file, query)
		if err != nil {
			if !strings.Contains(err.Error(), ": ") {
				t.Errorf("%q names no field", err)
			}
			return
		}
		kept := h.path([]string{"r1", "r2"})
		if !filepath.IsLocal(kept) || strings.Count(kept, "/") != 4 || !strings.HasPrefix(kept, "r1/r2/") || strings.ContainsAny(kept, "\x00\\") ||
			strings.HasSuffix(strings.ToLower(kept), shareSuffix) || strings.HasSuffix(strings.ToLower(kept), metadataSuffix) {
			t.Errorf("%q", kept)
		}
	})
}

func FuzzRelayLinesBelongToStartedNodes(f *testing.F) {
	f.Add([]byte("n: x\n{\"node\":\"n\",\"event\":\"start\"}\nn: y\n{\"node\":\"n\",\"event\":\"end\"}\n"))
	f.Add([]byte("{\"node\":\"m\",\"event\":\"start\"}\n{\n\xff: \n"))
	f.Add([]byte(`{"node":"m","Node":"n","event":"start"}` + "\n" + `{"node":"m","node":"n","event":"start"}` + "\n"))
	f.Fuzz(func(t *testing.T, answer []byte) {
		h, open := &hop{open: map[string]bool{"n": false}}, false
		for line := range bytes.Lines(answer) {
			got := h.check(line)
			switch begun, known := h.open["n"]; {
			case got == nil:
			case got[0] != '{' && (!open || !bytes.HasPrefix(got, []byte("n: "))):
				t.Fatalf("%q of a node that is not running", got)
			case got[0] == '{' && (!utf8.Valid(got) || !names(got, "n")):
				t.Fatalf("%q is not UTF-8, or may be read as a record of another node", got)
			default:
				open = known && begun
			}
		}
	})
}

// names reports whether every member of a record that a parser might take for the node has this value.
func names(record []byte, node string) bool {
	decoder := json.NewDecoder(bytes.NewReader(record))
	_, _ = decoder.Token()
	found := 0
	for decoder.More() {
		name, _ := decoder.Token()
		var value any
		if text, isText := name.(string); decoder.Decode(&value) != nil || !isText || strings.EqualFold(text, "node") && value != node {
			return false
		} else if text == "node" {
			found++
		}
	}
	return found > 0
}
