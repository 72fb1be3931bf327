package rudder

import (
	"bufio"
	"crypto"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"muster.example/gateway/limits"
)

// The keys of a header block, in their stored order.
var metadataKeys = []string{"header", "algorithm", "digest", "hash_value", "short_pubkey", "hostname", "keydate", "keyid"}

const signatureFormat = "rudder-signature-v1"

// metadata is the header block of a shared file.
type metadata struct {
	values    map[string]string
	algorithm crypto.Hash
	signature []byte
	key       *rsa.PublicKey
	expires   int64 // Unix seconds; 0: not given
}

var errLargeBlock = fmt.Errorf("the header block is larger than %d bytes", limits.ShareHead)

// readBlock reads a header block from the start of an upload. The block ends at an empty line; a line of a carriage
// return is not empty. A repeated key is an error.
func readBlock(from *bufio.Reader) (*metadata, error) {
	values := map[string]string{}
	for size := 0; ; {
		line, err := from.ReadSlice('\n')
		size += len(line)
		switch {
		case errors.Is(err, bufio.ErrBufferFull) || int64(size) > limits.ShareHead:
			return nil, errLargeBlock
		case err != nil && !errors.Is(err, io.EOF):
			return nil, err
		case len(line) <= 1:
			return checkBlock(values)
		case !utf8.Valid(line):
			return nil, errors.New("the header block is not UTF-8")
		}
		key, value, found := strings.Cut(strings.TrimSuffix(string(line), "\n"), "=")
		if !found {
			continue
		}
		if _, repeated := values[key]; repeated {
			return nil, fmt.Errorf("the header block has %.80q twice", key)
		}
		values[key] = value
	}
}

// checkBlock parses the values.
func checkBlock(values map[string]string) (m *metadata, err error) {
	m = &metadata{values: values}
	for _, key := range metadataKeys {
		if _, found := values[key]; !found {
			return nil, fmt.Errorf("the header block has no %s", key)
		}
	}
	if values["header"] != signatureFormat {
		return nil, fmt.Errorf("unknown header block format %.80q, known is %s", values["header"], signatureFormat)
	}
	var known bool
	if m.algorithm, known = algorithms[values["algorithm"]]; !known {
		return nil, fmt.Errorf("unknown algorithm %.80q", values["algorithm"])
	}
	if m.signature, err = hex.DecodeString(values["digest"]); err != nil {
		return nil, fmt.Errorf("digest: %w", err)
	}
	values["hash_value"] = strings.ToLower(values["hash_value"])
	hash, err := hex.DecodeString(values["hash_value"])
	if err != nil || len(hash) != m.algorithm.Size() {
		return nil, fmt.Errorf("hash_value is not a %s hash", values["algorithm"])
	}
	if m.key, err = parseKey(values["short_pubkey"]); err != nil {
		return nil, fmt.Errorf("short_pubkey: %w", err)
	}
	if text, found := values["expires"]; found {
		if m.expires, err = strconv.ParseInt(text, 10, 64); err != nil {
			return nil, fmt.Errorf("expires: %w", err)
		}
	}
	stored := *m // with its expiry it must be readable, too
	stored.expires = math.MinInt64
	if int64(len(stored.text())) > limits.ShareHead {
		return nil, errLargeBlock
	}
	return m, nil
}

// parseKey parses a public key in PKCS#1, base64 on one line.
func parseKey(text string) (*rsa.PublicKey, error) {
	der, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, err
	}
	return x509.ParsePKCS1PublicKey(der)
}

// spki returns the key as SubjectPublicKeyInfo in DER, whose hash is in nodes lists.
func (m *metadata) spki() ([]byte, error) { return x509.MarshalPKIXPublicKey(m.key) }

// verify checks the signature over a content with this digest.
func (m *metadata) verify(digest []byte) error {
	return rsa.VerifyPKCS1v15(m.key, m.algorithm, digest, m.signature)
}

// text returns the block in its stored form: only known keys, in their order.
func (m *metadata) text() string {
	var lines strings.Builder
	for _, key := range metadataKeys {
		lines.WriteString(key + "=" + m.values[key] + "\n")
	}
	fmt.Fprintf(&lines, "expires=%d\n", m.expires)
	return lines.String()
}

// readMetadata parses the output of text.
func readMetadata(from io.Reader) (*metadata, error) {
	return readBlock(bufio.NewReaderSize(from, int(limits.ShareHead)))
}

// isName reports whether a text may be an id: it must be safe as a file name.
func isName(text string) bool {
	if text == "" || text == "." || text == ".." || len(text) > 255 {
		return false
	}
	return strings.Trim(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.") == ""
}
