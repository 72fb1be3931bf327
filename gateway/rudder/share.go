package rudder

import (
	"bufio"
	"context"
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path"
	"strconv"
	"strings"
	"syscall"
	"time"

	"muster.example/gateway/limits"
)

// share is a request of the extended dialect for a file from one node for another.
type share struct {
	target, source, file string
	signature            []byte // of a POST
	hash                 string // lower-case hex of SHA-256 or SHA-512; optional for a POST
	ttl                  string
	lasts                bool // no ttl
}

// parseShare parses the query. An invalid one is a rejection that names the field.
func parseShare(method, target, file string, query url.Values) (*share, error) {
	known := []string{"source-uuid", "signature", "hash", "ttl"}
	if method == http.MethodHead {
		known = []string{"source-uuid", "hash"}
	}
	if err := onlyOnce(query, known); err != nil {
		return nil, err
	}
	h := &share{target: target, source: query.Get("source-uuid"), file: file, hash: query.Get("hash"), ttl: query.Get("ttl"),
		lasts: !query.Has("ttl")}
	for field, id := range map[string]string{"target_uuid": h.target, "source-uuid": h.source, "file_id": h.file} {
		if err := checkID(id); err != nil {
			return nil, rejection(field + ": " + err.Error())
		}
	}
	if h.hash == "" && (method == http.MethodHead || query.Has("hash")) {
		return nil, rejection("hash: missing")
	}
	if strings.Trim(h.hash, "0123456789abcdef") != "" || len(h.hash) != 0 && len(h.hash) != 2*sha256.Size && len(h.hash) != 2*sha512.Size {
		return nil, rejection("hash: should be SHA-256 or SHA-512 in lower-case hex")
	}
	if method == http.MethodHead {
		return h, nil
	}
	var err error
	if h.signature, err = hex.DecodeString(query.Get("signature")); err != nil || len(h.signature) == 0 {
		return nil, rejection("signature: should be hex")
	}
	if _, err := h.expiry(time.Now()); err != nil {
		return nil, rejection("ttl: " + err.Error())
	}
	return h, nil
}

// checkID returns why an id cannot be the name of a file or a folder.
func checkID(id string) error {
	for _, suffix := range []string{metadataSuffix, shareSuffix} {
		if len(id) >= len(suffix) && strings.EqualFold(id[len(id)-len(suffix):], suffix) {
			return fmt.Errorf("must not end in %s", suffix)
		}
	}
	if !isName(id) || !isName(id+shareSuffix) || id == incoming || id == spoolFolder {
		return errors.New("should be 1 to 248 letters, digits, '-', '_' and '.', and not a dot segment")
	}
	return nil
}

// expiry returns when a file that arrives now expires, in Unix seconds; 0: never.
func (h *share) expiry(now time.Time) (int64, error) {
	if h.lasts {
		return 0, nil
	}
	return expiry(now, h.ttl)
}

// path returns the file's path, under the relays on the route to its target.
func (h *share) path(route []string) string {
	return path.Join(append(route, h.target, h.source, h.file)...)
}

// received describes received bytes.
type received struct {
	size           int64
	sha256, sha512 []byte
}

// has reports whether the bytes have a hash in hex.
func (c *received) has(hash string) bool {
	return hash == hex.EncodeToString(c.sha256) || hash == hex.EncodeToString(c.sha512)
}

// Names of the lines that describe a stored file.
const (
	lineDate, lineHash, lineShort, lineSignature, lineSize, lineExpires = "date", "hash", "hash-sha256", "signature", "size", "expires"
)

// describe returns the text that is stored beside the file.
func (h *share) describe(c *received, now time.Time, expires int64) string {
	text := fmt.Sprintf("%s=%s\n%s=%x\n%s=%x\n%s=%x\n%s=%d\n", lineDate, now.UTC().Format(time.RFC3339), lineHash, c.sha512,
		lineShort, c.sha256, lineSignature, h.signature, lineSize, c.size)
	if expires != 0 {
		text += fmt.Sprintf("%s=%d\n", lineExpires, expires)
	}
	return text
}

// readShare parses the output of describe.
func readShare(described io.Reader) (map[string]string, error) {
	values := map[string]string{}
	lines := bufio.NewScanner(io.LimitReader(described, limits.ShareHead))
	for lines.Scan() {
		if name, value, found := strings.Cut(lines.Text(), "="); found {
			values[name] = value
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if len(values[lineHash]) != 2*sha512.Size || values[lineSize] == "" {
		return nil, errors.New("hash or size is missing")
	}
	return values, nil
}

func expiryOfShare(described io.Reader) (int64, error) {
	values, err := readShare(described)
	if err != nil || values[lineExpires] == "" {
		return 0, err
	}
	ends, err := strconv.ParseInt(values[lineExpires], 10, 64)
	return max(ends, 1), err
}

// serveShare answers POST and HEAD shared-files/node/<target>/<file id>.
func (s *Server) serveShare(w http.ResponseWriter, r *http.Request, target, file string) {
	if !s.allowed(w, r, http.MethodPost, http.MethodHead) {
		return
	}
	if r.Method == http.MethodPost && !s.bounded(w, r, s.config.MaxBodySize) {
		return
	}
	query, err := url.ParseQuery(r.URL.RawQuery)
	var h *share
	if err == nil {
		h, err = parseShare(r.Method, target, file, query)
	}
	if err != nil {
		s.refuseShare(w, r, refusal{http.StatusBadRequest, err.Error()})
		return
	}
	if r.Method == http.MethodHead {
		w.WriteHeader(s.findShare(r, h))
		return
	}
	accepted, err := s.receiveShare(w, r, h)
	switch {
	case err != nil:
		s.refuseShare(w, r, err)
	case accepted != nil:
		w.Header().Set("Location", basePath+"shared-files/uploads/"+accepted.ID)
		answerUpload(w, http.StatusAccepted, accepted)
	default:
		w.WriteHeader(http.StatusOK)
	}
}

// refusal is an answer with its reason.
type refusal struct {
	code int
	why  string
}

func (r refusal) Error() string { return r.why }

func (s *Server) refuseShare(w http.ResponseWriter, r *http.Request, err error) {
	refused := refusalOf(err)
	s.log.Warn("shared file refused", "method", r.Method, "path", r.URL.Path, "code", refused.code, "remote", r.RemoteAddr, "error", err)
	s.drain(w, r)
	answer(w, refused.code, refused.why)
}

// refusalOf returns the code for an error.
func refusalOf(err error) refusal {
	var refused refusal
	switch {
	case errors.As(err, &refused):
		return refused
	case errors.Is(err, errNeverFits), errors.Is(err, errNoSpace), errors.Is(err, errSourceNoSpace):
		return refusal{spaceCode(err), err.Error()}
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return refusal{http.StatusInsufficientStorage, "the disk of this relay is full"}
	case errors.Is(err, os.ErrDeadlineExceeded):
		return refusal{http.StatusRequestTimeout, "the body stalled"}
	case errors.Is(err, io.ErrUnexpectedEOF):
		return refusal{http.StatusBadRequest, "the body is shorter than its Content-Length"}
	case errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.EISDIR), errors.Is(err, fs.ErrExist):
		return refusal{http.StatusConflict, "the path is in use by a file of another node: choose another file_id"}
	}
	return refusal{http.StatusInternalServerError, "the relay cannot store the file: see its log"}
}

// receiveShare receives a POST. It stores the file here or, for an unknown target, spools it for the policy server and
// returns the upload.
func (s *Server) receiveShare(w http.ResponseWriter, r *http.Request, h *share) (*upload, error) {
	known := s.state.Load()
	if !known.knows(h.target) && s.self == rootID {
		return nil, refusal{http.StatusNotFound, "target_uuid: node not found"}
	}
	route, found := known.route(h.target)
	if known.knows(h.target) && !found {
		return nil, refusal{http.StatusInternalServerError, "the nodes list has no route to the target: one of its policy servers is missing, or there is a loop"}
	}
	if !found && s.config.UpstreamHost == "" {
		return nil, refusal{http.StatusInternalServerError, "the target is unknown, and rudder.upstream_host has no value"}
	}
	if !found {
		if err := s.addVia(http.Header{}, r.Header); err != nil {
			return nil, refusal{http.StatusLoopDetected, err.Error()}
		}
	}
	key, err := known.sourceKey(h.source, found)
	if err != nil {
		return nil, err
	}
	end, err := s.beginUpload(r)
	if err != nil {
		return nil, err
	}
	defer end()
	release, err := s.store.space.reserve(h.source, r.ContentLength)
	if err != nil {
		return nil, err
	}
	defer release()
	file, name, err := s.store.create()
	if err != nil {
		return nil, err
	}
	defer s.store.discard(file, name)
	got, err := h.receive(file, s.newIdleReader(w, r), key)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	expires, err := h.expiry(now)
	if err != nil {
		return nil, err
	}
	if found {
		return nil, s.store.keep(h.path(route), file, name, h.describe(got, now, expires))
	}
	return s.spool.add(h, got, expires, r.Header.Values("Via"), file, name)
}

// sourceKey returns the key of a node's certificate that matches the nodes list. A file that is stored elsewhere may
// come from a node whose certificate is missing here: nil; the relay that stores it needs the certificate.
func (s *state) sourceKey(source string, needed bool) (*rsa.PublicKey, error) {
	if !s.knows(source) {
		return nil, refusal{http.StatusNotFound, "source-uuid: node not found"}
	}
	if len(s.certificates[source]) == 0 && !needed {
		return nil, nil
	}
	expected, usable := parseKeyHash(s.nodes[source].KeyHash)
	if !usable {
		return nil, refusal{http.StatusForbidden, "source-uuid: the nodes list has no usable key-hash of the node"}
	}
	for _, certificate := range s.certificates[source] {
		spki, err := x509.MarshalPKIXPublicKey(certificate.PublicKey)
		if key, isRSA := certificate.PublicKey.(*rsa.PublicKey); err == nil && isRSA && expected.is(spki) {
			return key, nil
		}
	}
	return nil, refusal{http.StatusForbidden, "source-uuid: no certificate of the node has the key of the nodes list"}
}

// receive writes a body to disk and checks it.
func (h *share) receive(file *os.File, body io.Reader, key *rsa.PublicKey) (*received, error) {
	long, short := sha512.New(), sha256.New()
	size, err := io.Copy(io.MultiWriter(file, long, short), body)
	if err != nil {
		return nil, err
	}
	got := &received{size, short.Sum(nil), long.Sum(nil)}
	switch {
	case key != nil && rsa.VerifyPKCS1v15(key, crypto.SHA512, got.sha512, h.signature) != nil:
		return nil, refusal{http.StatusForbidden, "signature: not the source's over this content (RSA PKCS#1 v1.5, SHA-512)"}
	case h.hash != "" && !got.has(h.hash):
		return nil, refusal{http.StatusBadRequest, "hash: not that of the content"}
	}
	return got, nil
}

// findShare answers a HEAD: 200 if the file is stored here or upstream, 202 if it is in transit, 404 if it has to be
// sent.
func (s *Server) findShare(r *http.Request, h *share) int {
	known := s.state.Load()
	if !known.knows(h.target) && s.self != rootID {
		if s.spool.holds(h) {
			return http.StatusAccepted
		}
		return s.askUpstream(r, h, known)
	}
	route, found := known.route(h.target)
	if !found {
		return http.StatusNotFound
	}
	kept, err := s.findFile(h.path(route))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.log.Warn("cannot read a shared file", "file", h.path(route), "error", err)
	}
	if err == nil && (kept[lineHash] == h.hash || kept[lineShort] == h.hash) {
		return http.StatusOK
	}
	return http.StatusNotFound
}

// findFile returns the description of a complete file that has not expired.
func (s *Server) findFile(file string) (map[string]string, error) {
	described, err := s.store.described(file)
	if err != nil {
		return nil, err
	}
	defer described.Close()
	values, err := readShare(described)
	if err != nil {
		return nil, err
	}
	info, err := s.store.root.Stat(file)
	if err != nil {
		return nil, err
	}
	ends, _ := strconv.ParseInt(values[lineExpires], 10, 64)
	if ends != 0 && ends < time.Now().Unix() || strconv.FormatInt(info.Size(), 10) != values[lineSize] {
		return nil, fs.ErrNotExist
	}
	return values, nil
}

// askUpstream asks the policy server for a file. If it cannot answer, the file has to be sent: it is spooled here
// meanwhile.
func (s *Server) askUpstream(r *http.Request, h *share, known *state) int {
	query := url.Values{"source-uuid": {h.source}, "hash": {h.hash}}
	ctx, cancel := context.WithTimeout(r.Context(), pollTime)
	defer cancel()
	response, err := s.toUpstream(ctx, known, http.MethodHead, h.upstreamPath(), query, r.Header.Values("Via"), nil, 0)
	if err != nil {
		s.log.Info("cannot ask the policy server for a shared file", "target", h.target, "file", h.file, "error", err)
		return http.StatusNotFound
	}
	response.Body.Close()
	if response.StatusCode == http.StatusOK || response.StatusCode == http.StatusAccepted {
		return response.StatusCode
	}
	return http.StatusNotFound
}

func (h *share) upstreamPath() string { return "shared-files/node/" + h.target + "/" + h.file }
