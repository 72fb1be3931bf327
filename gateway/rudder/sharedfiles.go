package rudder

import (
	"bufio"
	"context"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"time"

	"muster.example/gateway/limits"
	"muster.example/gateway/listen"
)

// serveSharedFiles answers PUT and HEAD shared-files/<target>/<source>/<file id>.
func (s *Server) serveSharedFiles(w http.ResponseWriter, r *http.Request, id sharedID) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	needed := map[string]string{http.MethodPut: "ttl", http.MethodHead: "hash"}[r.Method]
	if err != nil || needed == "" || len(query[needed]) != 1 {
		s.drain(w, r)
		notFound(w)
		return
	}
	if r.Method == http.MethodPut && !s.bounded(w, r, s.config.MaxBodySize) {
		return
	}
	code, err := s.sharedFile(w, r, id, query.Get(needed))
	if err != nil {
		s.log.Warn("shared file refused", "method", r.Method, "target", id.target, "source", id.source, "file", id.file,
			"code", code, "remote", r.RemoteAddr, "error", err)
	}
	if code >= http.StatusBadRequest {
		s.drain(w, r)
	}
	w.WriteHeader(code)
}

// sharedFile handles the request; its error is for the log, the answer has only the code.
func (s *Server) sharedFile(w http.ResponseWriter, r *http.Request, id sharedID, parameter string) (int, error) {
	known := s.state.Load()
	switch {
	case !id.valid():
		return http.StatusBadRequest, errors.New("an id has invalid characters, or the suffix of metadata")
	case !known.knows(id.target) && s.self == rootID:
		return http.StatusInternalServerError, errors.New("the target is not in the nodes list")
	case !known.knows(id.target):
		return s.upstream(w, r, id, known)
	case r.Method == http.MethodHead:
		return s.compare(id, parameter)
	}
	source, found := known.nodes[id.source]
	if !found {
		return http.StatusNotFound, errors.New("the source is not in the nodes list")
	}
	end, err := s.beginUpload(r)
	if err != nil {
		return http.StatusServiceUnavailable, err
	}
	defer end()
	release, err := s.store.space.reserve(id.source, r.ContentLength)
	if err != nil {
		return spaceCode(err), err
	}
	defer release()
	return s.receive(s.newIdleReader(w, r), id, source, parameter)
}

// The refusals of uploads beyond the limits.
var (
	errTooManyUploads = refusal{http.StatusServiceUnavailable, "too many uploads of this address at once: send it again later"}
	errUploadsBusy    = refusal{http.StatusServiceUnavailable, "too many uploads of all addresses at once: send it again later"}
)

// beginUpload waits for the token of an upload. The caller calls the function at its end.
func (s *Server) beginUpload(r *http.Request) (end func(), err error) {
	remote, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return nil, err
	}
	network := listen.NetworkOf(remote.Addr()).String()
	if !s.senderUploads.Acquire(network, 1) {
		return nil, errTooManyUploads
	}
	ctx, cancel := context.WithTimeoutCause(r.Context(), limits.UploadWait, errUploadsBusy)
	defer cancel()
	select {
	case s.uploads <- struct{}{}:
		return func() {
			<-s.uploads
			s.senderUploads.Release(network, 1)
		}, nil
	case <-ctx.Done():
		s.senderUploads.Release(network, 1)
		return nil, context.Cause(ctx)
	}
}

// spaceCode returns the answer for missing space.
func spaceCode(err error) int {
	if errors.Is(err, errNeverFits) {
		return http.StatusRequestEntityTooLarge
	}
	return http.StatusInsufficientStorage
}

// compare checks whether the stored file has this hash. Like released relays, it reads only the header block, and
// ignores its expiry.
func (s *Server) compare(id sharedID, hash string) (int, error) {
	m, err := s.store.describe(id.path())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return http.StatusNotFound, nil
	case err != nil:
		return http.StatusInternalServerError, err
	case m.values["hash_value"] != hash:
		return http.StatusNotFound, nil
	}
	return http.StatusOK, nil
}

// receive checks an upload while writing it to disk, and stores it.
func (s *Server) receive(body io.Reader, id sharedID, source node, ttl string) (int, error) {
	buffered := bufio.NewReaderSize(body, int(limits.ShareHead))
	m, err := readBlock(buffered)
	if err != nil {
		return http.StatusInternalServerError, err
	}
	expected, usable := parseKeyHash(source.KeyHash)
	if !usable {
		return http.StatusInternalServerError, errors.New("the nodes list has no usable key-hash of the source")
	}
	spki, err := m.spki()
	if err != nil {
		return http.StatusInternalServerError, err
	}
	if !expected.is(spki) {
		return http.StatusNotFound, errors.New("the public key is not that of the source")
	}
	file, name, err := s.store.create()
	if err != nil {
		return http.StatusInternalServerError, err
	}
	defer s.store.discard(file, name)
	if err := m.receive(file, buffered); err != nil {
		return http.StatusInternalServerError, err
	}
	if m.expires, err = expiry(time.Now(), ttl); err != nil {
		return http.StatusBadRequest, err
	}
	if err := s.store.keep(id.path(), file, name, m.text()); err != nil {
		return http.StatusInternalServerError, err
	}
	return http.StatusOK, nil
}

// receive writes the content to disk and checks its signature with the digest of the written bytes.
func (m *metadata) receive(file *os.File, content io.Reader) error {
	digest := m.algorithm.New()
	if _, err := io.Copy(io.MultiWriter(file, digest), content); err != nil {
		return err
	}
	return m.verify(digest.Sum(nil))
}

// upstream asks this relay's policy server, once, and returns its status.
func (s *Server) upstream(w http.ResponseWriter, r *http.Request, id sharedID, known *state) (int, error) {
	if s.config.UpstreamHost == "" {
		return http.StatusInternalServerError, errors.New("the target is not in the nodes list, and rudder.upstream_host has no value")
	}
	client, err := known.client(s.pinning(), known.upstream)
	if err != nil {
		return http.StatusInternalServerError, err
	}
	ctx, cancel := context.WithTimeout(r.Context(), limits.Forwarding)
	defer cancel()
	path := "shared-files/" + id.target + "/" + id.source + "/" + id.file
	request, err := http.NewRequestWithContext(ctx, r.Method, s.peerURL(s.config.UpstreamHost, path, r.URL.Query().Encode()), nil)
	if err != nil {
		return http.StatusInternalServerError, err
	}
	if r.Method == http.MethodPut && r.ContentLength > 0 {
		request.Body, request.ContentLength = io.NopCloser(s.newIdleReader(w, r)), r.ContentLength
	}
	if err := s.addVia(request.Header, r.Header); err != nil {
		return http.StatusInternalServerError, err
	}
	response, err := client.Do(request)
	if err != nil {
		return http.StatusInternalServerError, err
	}
	response.Body.Close()
	return response.StatusCode, nil
}
