package rudder

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Two child relays of root, the first with another child; and broken entries.
const (
	deep = "n-a a.example root\nn-b b.example root\nr1 127.0.0.2 root\nn-c c.example r1\nr2 127.0.0.3 r1\nn-d d.example r2\n" +
		"r3 127.0.0.4 root\nn-e e.example r3"
	broken = "\nloop1 x loop2\nloop2 y loop1\nlost z nowhere"
)

func treeOf(t *testing.T, self, list string) *tree {
	t.Helper()
	path := filepath.Join(t.TempDir(), "nodeslist.json")
	if err := os.WriteFile(path, []byte(list), 0o600); err != nil {
		t.Fatal(err)
	}
	found, err := loadTree(self, path)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func lines(text string) []string { return strings.Split(text, "\n") }

func TestNextHopIsChildRelayOfRoute(t *testing.T) {
	tree := treeOf(t, "root", listOf(lines("root root.example root\n"+deep+broken)...))
	for id, want := range map[string]string{
		"root": "", "n-a": "", "r1": "", "n-c": "r1", "r2": "r1", "n-d": "r1", "n-e": "r3", "loop1": "none", "loop2": "none",
		"lost": "none", "nobody": "none",
	} {
		hop, found := tree.nextHop(id)
		if !found {
			hop = "none"
		}
		if hop != want {
			t.Errorf("%s: got %q, want %q", id, hop, want)
		}
	}
}

func TestNodesBeyondTwentyLevelsAreUnreachable(t *testing.T) {
	entries, parent := []string{}, "root"
	for i := range 25 {
		id := "level" + string(rune('a'+i))
		entries = append(entries, id+" host "+parent)
		parent = id
	}
	tree := treeOf(t, "root", keylessList(entries))
	if _, found := tree.nextHop("levelt"); !found {
		t.Error("level 20 is not reached")
	}
	if _, found := tree.nextHop("levelu"); found {
		t.Error("level 21 is reached")
	}
}

// keylessList returns a list of nodes without keys.
func keylessList(entries []string) string {
	all := []string{}
	for _, entry := range entries {
		part := strings.Fields(entry)
		all = append(all, `"`+part[0]+`":{"hostname":"`+part[1]+`","policy-server":"`+part[2]+`"}`)
	}
	return "{" + strings.Join(all, ",") + "}"
}

func TestSplitGroupsNodesByNextHop(t *testing.T) {
	tree := treeOf(t, "root", listOf(lines("root root.example root\n"+deep+broken)...))
	local, branches, lost := tree.split([]string{"n-d", "n-a", "n-c", "root", "n-a", "nobody", "loop1", "r1", "n-e"})
	if !slices.Equal(local, []string{"n-a", "root", "r1"}) {
		t.Error("local", local)
	}
	if !slices.Equal(branches["r1"], []string{"n-d", "n-c"}) || !slices.Equal(branches["r3"], []string{"n-e"}) || len(branches) != 2 {
		t.Error("branches", branches)
	}
	if !slices.Equal(lost, []string{"nobody", "loop1"}) {
		t.Error("lost", lost)
	}
}

func TestChildrenIncludeRelaysButNotRoot(t *testing.T) {
	known := treeOf(t, "root", listOf(lines("root root.example root\nempty e.example root\n"+deep+broken)...))
	relays := func(of *tree) []string {
		_, branches, _ := of.split(of.ids())
		return slices.Sorted(maps.Keys(branches))
	}
	if got := relays(known); !slices.Equal(got, []string{"r1", "r3"}) {
		t.Error(got)
	}
	if got := known.children(); !slices.Equal(got, []string{"empty", "n-a", "n-b", "r1", "r3", "root"}) {
		t.Error(got)
	}
	below := treeOf(t, "r1", listOf("n-c c.example r1", "r2 127.0.0.3 r1", "n-d d.example r2"))
	if got := relays(below); !slices.Equal(got, []string{"r2"}) {
		t.Error(got)
	}
}

func TestMissingListIsEmptyAndInvalidListFails(t *testing.T) {
	missing, err := loadTree("root", filepath.Join(t.TempDir(), "none.json"))
	if err != nil || len(missing.nodes) != 0 || missing.knows("root") {
		t.Error(missing, err)
	}
	for _, content := range []string{"", "null", "[]", "{", `{"a":{}}`, `{"a":{"hostname":"x"}}`, `{"a":{"policy-server":"x"}}`, `{"a":5}`} {
		path := filepath.Join(t.TempDir(), "list.json")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := loadTree("root", path); err == nil {
			t.Errorf("%q was read", content)
		}
	}
}

func TestKeyHashHasTwoForms(t *testing.T) {
	sum := sha256.Sum256([]byte("key"))
	for text, want := range map[string]bool{
		"sha256:" + hex.EncodeToString(sum[:]):                 true,
		"sha256//" + base64.StdEncoding.EncodeToString(sum[:]): true,
		"sha512:" + hex.EncodeToString(sum[:]):                 false,
		"sha256:":                                              false, "": false, "sha256": false, "md5:00": false, "sha256//" + hex.EncodeToString(sum[:]): false,
	} {
		hash, usable := parseKeyHash(text)
		if usable != want || usable && !hash.is([]byte("key")) || usable && hash.is([]byte("yek")) {
			t.Errorf("%q: %v", text, usable)
		}
	}
}

func TestCertificatesAreGroupedByNode(t *testing.T) {
	s := start(t, "root", "127.0.0.1", 0, listOf("n-a a.example root", "n-b b.example root"), withCertificates("n-a", "stranger", "n-b", "n-a"))
	found := s.server.state.Load().certificates
	if got := slices.Sorted(maps.Keys(found)); !slices.Equal(got, []string{"n-a", "n-b"}) || len(found["n-a"]) != 2 {
		t.Error(got)
	}
}
