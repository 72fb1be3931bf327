package rudder

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"muster.example/gateway/limits"
)

const (
	retryBase = time.Second
	retryMax  = 5 * time.Minute
	pollTime  = 30 * time.Second // for a request without a body
)

// retryPause returns an exponential back-off with full jitter.
func retryPause(tries int) time.Duration {
	ceiling := min(retryBase<<min(tries, 16), retryMax)
	return retryBase/2 + rand.N(ceiling)
}

// toUpstream sends a request to this relay's policy server, with the relays that it has passed.
func (s *Server) toUpstream(ctx context.Context, known *state, method, path string, query url.Values, via []string,
	body io.Reader, size int64) (*http.Response, error) {
	client, err := known.client(s.pinning(), known.upstream)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, method, s.peerURL(s.config.UpstreamHost, path, query.Encode()), body)
	if err != nil {
		return nil, err
	}
	request.ContentLength = size
	if err := s.addVia(request.Header, http.Header{"Via": via}); err != nil {
		return nil, err
	}
	return client.Do(request)
}

// forward forwards an upload to the policy server, or requests its outcome there. It reports whether the upload has
// ended.
func (s *Server) forward(ctx context.Context, u *upload) bool {
	turn, step := s.senders, s.send
	if u.UpstreamID != "" {
		turn, step = s.askers, s.follow
	}
	select {
	case turn <- struct{}{}:
		defer func() { <-turn }()
	case <-ctx.Done():
		return false
	}
	return step(ctx, u)
}

// send forwards the content.
func (s *Server) send(ctx context.Context, u *upload) bool {
	content, err := s.store.root.Open(u.file())
	if errors.Is(err, fs.ErrNotExist) {
		s.spool.end(u, stateRefused, http.StatusInternalServerError, "its content is missing: "+err.Error())
		return true
	}
	if err != nil { // such as too many open files: the content was accepted, and is kept
		s.spool.note(u, "", "cannot read its content: "+err.Error())
		return false
	}
	defer content.Close()
	query := url.Values{"source-uuid": {u.Source}, "signature": {u.Signature}, "hash": {u.Hash}}
	if u.Expires != 0 { // the time to live counts from the receipt by the first relay
		query.Set("ttl", strconv.FormatInt(max(u.Expires-time.Now().Unix(), 0), 10))
	}
	ctx, cancel := context.WithTimeout(ctx, limits.Forwarding)
	defer cancel()
	h := &share{target: u.Target, file: u.File}
	var body io.Reader = io.NopCloser(content)
	if u.Size == 0 {
		body = http.NoBody
	}
	response, err := s.toUpstream(ctx, s.state.Load(), http.MethodPost, h.upstreamPath(), query, u.Via, body, u.Size)
	return s.recordOutcome(u, "", response, err)
}

// follow requests the outcome from the policy server, which is still forwarding the upload.
func (s *Server) follow(ctx context.Context, u *upload) bool {
	ctx, cancel := context.WithTimeout(ctx, pollTime)
	defer cancel()
	response, err := s.toUpstream(ctx, s.state.Load(), http.MethodGet, "shared-files/uploads/"+u.UpstreamID, nil, u.Via, nil, 0)
	if err == nil && response.StatusCode == http.StatusNotFound {
		response.Body.Close()
		s.spool.note(u, "", "the policy server does not know the upload: it is sent again")
		return false
	}
	return s.recordOutcome(u, u.UpstreamID, response, err)
}

// recordOutcome records the outcome of a response; without an outcome there is a retry.
func (s *Server) recordOutcome(u *upload, upstreamID string, response *http.Response, err error) (ended bool) {
	if err != nil {
		s.spool.note(u, upstreamID, err.Error())
		return false
	}
	defer response.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(response.Body, limits.ShareHead))
	var current upload
	switch code := response.StatusCode; {
	case code == http.StatusOK && upstreamID == "":
		s.spool.end(u, stateDelivered, 0, "")
	case code == http.StatusOK || code == http.StatusAccepted:
		if err := json.Unmarshal(text, &current); err != nil || !isName(current.ID) {
			s.spool.note(u, upstreamID, fmt.Sprintf("the policy server answered %d without a valid upload", code))
			return false
		}
		switch current.State {
		case stateDelivered, stateRefused, stateExpired:
			s.spool.end(u, current.State, current.Code, current.Reason)
		case statePending:
			s.spool.note(u, current.ID, current.Reason)
			return false
		default: // the content is kept until its outcome is known
			s.spool.note(u, upstreamID, fmt.Sprintf("the policy server answered %d with the unknown state %.80q", code, current.State))
			return false
		}
	case code/100 == 4 && code != http.StatusRequestTimeout && code != http.StatusTooManyRequests:
		s.spool.end(u, stateRefused, code, string(text[:min(len(text), int(limits.PeerReason))]))
	default:
		s.spool.note(u, upstreamID, fmt.Sprintf("the policy server answered %d: %s", code, text[:min(len(text), int(limits.PeerReason))]))
		return false
	}
	return true
}

// serveUpload answers GET shared-files/uploads/<id>.
func (s *Server) serveUpload(w http.ResponseWriter, r *http.Request, id string) {
	if !s.allowed(w, r, http.MethodGet) {
		return
	}
	found, known := s.spool.find(id)
	if !known {
		answer(w, http.StatusNotFound, "upload not found")
		return
	}
	answerUpload(w, http.StatusOK, &found)
}

// answerUpload sends the state of an upload.
func answerUpload(w http.ResponseWriter, code int, u *upload) {
	current := *u
	current.Signature, current.Via, current.UpstreamID = "", nil, ""
	text, err := json.Marshal(&current)
	if err != nil {
		answer(w, http.StatusInternalServerError, "INTERNAL SERVER ERROR")
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(append(text, '\n'))
}
