package rudder

import (
	"crypto"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"muster.example/gateway/limits"
)

const (
	rootID = "root"
)

// node is an entry of nodeslist.json.
type node struct {
	Hostname string `json:"hostname"`
	Parent   string `json:"policy-server"`
	KeyHash  string `json:"key-hash"`
}

// tree is what one relay knows: itself and its descendants. It is immutable: a reload creates a new one.
type tree struct {
	self  string
	nodes map[string]node
}

// loadTree reads nodeslist.json. A missing file is an empty list, an invalid one is an error.
func loadTree(self, path string) (*tree, error) {
	content, err := readBounded(path)
	if errors.Is(err, fs.ErrNotExist) {
		return &tree{self: self}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("nodes list: %w", err)
	}
	t := &tree{self: self}
	if err := json.Unmarshal(content, &t.nodes); err != nil {
		return nil, fmt.Errorf("nodes list: %s: %w", path, err)
	}
	if t.nodes == nil {
		return nil, fmt.Errorf("nodes list: %s: not a JSON object", path)
	}
	for id, node := range t.nodes {
		if node.Hostname == "" || node.Parent == "" {
			return nil, fmt.Errorf("nodes list: %s: node %q has no hostname or no policy-server", path, id)
		}
	}
	return t, nil
}

func readBounded(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil {
		return nil, err
	} else if info.Size() > limits.ListFile {
		return nil, fmt.Errorf("%s is larger than %d bytes", path, limits.ListFile)
	}
	return io.ReadAll(io.LimitReader(file, limits.ListFile)) // it may grow meanwhile
}

func (t *tree) knows(id string) bool {
	_, known := t.nodes[id]
	return known
}

// nextHop returns the child relay that leads to a node: "" if the node is attached to this relay. It reports false for
// a node that is unknown, elsewhere or in a loop.
func (t *tree) nextHop(id string) (hop string, found bool) {
	current, known := t.nodes[id]
	if !known {
		return "", false
	}
	for range limits.Depth {
		if current.Parent == t.self {
			return hop, true
		}
		hop = current.Parent
		if current, known = t.nodes[hop]; !known {
			return "", false
		}
	}
	return "", false
}

// route returns the relays between this one and a node, the nearest first; false as for nextHop.
func (t *tree) route(id string) (relays []string, found bool) {
	current, known := t.nodes[id]
	for range limits.Depth {
		if !known {
			break
		}
		if current.Parent == t.self {
			slices.Reverse(relays)
			return relays, true
		}
		relays = append(relays, current.Parent)
		current, known = t.nodes[current.Parent]
	}
	return nil, false
}

// split returns the nodes that are attached here, the descendants of each child relay, and the unreachable ids. A
// repeated id counts once.
func (t *tree) split(ids []string) (local []string, branches map[string][]string, lost []string) {
	branches = map[string][]string{}
	seen := map[string]bool{}
	for _, id := range ids {
		if seen[id] {
			continue
		}
		seen[id] = true
		switch hop, found := t.nextHop(id); {
		case !found:
			lost = append(lost, id)
		case hop == "":
			local = append(local, id)
		default:
			branches[hop] = append(branches[hop], id)
		}
	}
	return local, branches, lost
}

// children returns the nodes that are attached to this relay, sorted by id.
func (t *tree) children() (ids []string) {
	for id, node := range t.nodes {
		if node.Parent == t.self {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// ids returns the sorted ids of all nodes of the list.
func (t *tree) ids() []string { return slices.Sorted(maps.Keys(t.nodes)) }

func (t *tree) hostnames(ids []string) []string {
	names := make([]string, len(ids))
	for i, id := range ids {
		names[i] = t.nodes[id].Hostname
	}
	return names
}

// algorithms are keyed by their names in lists, header blocks and queries.
var algorithms = map[string]crypto.Hash{"sha256": crypto.SHA256, "sha512": crypto.SHA512}

// keyHash identifies the public key of a node.
type keyHash struct {
	algorithm crypto.Hash
	sum       []byte
}

// parseKeyHash parses "sha256:<hex>" and "sha256//<base64>", and the same of sha512.
func parseKeyHash(text string) (keyHash, bool) {
	decode := hex.DecodeString
	name, sum, found := strings.Cut(text, "//")
	if found {
		decode = base64.StdEncoding.DecodeString
	} else {
		name, sum, _ = strings.Cut(text, ":")
	}
	algorithm, known := algorithms[name]
	bytes, err := decode(sum)
	if !known || err != nil || len(bytes) != algorithm.Size() {
		return keyHash{}, false
	}
	return keyHash{algorithm, bytes}, true
}

// is reports whether a key, as SubjectPublicKeyInfo in DER, has this hash.
func (k keyHash) is(spki []byte) bool {
	hash := k.algorithm.New()
	hash.Write(spki)
	return subtle.ConstantTimeCompare(hash.Sum(nil), k.sum) == 1
}
