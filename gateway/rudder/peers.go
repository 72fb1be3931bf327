package rudder

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"muster.example/gateway/limits"
)

const (
	basePath = "/rudder/relay-api/"
	dialTime = 10 * time.Second
)

var (
	errUnpinned = errors.New("no certificate of this relay is known")
	errLoop     = errors.New("the request has passed this relay before, or too many relays: the tree has a loop")
)

// client creates a client for one request to another relay: TLS 1.3 and no redirects. Like released relays it has no
// client certificate, unless one is given. With pins, only pinned certificates are trusted and the host name is not
// compared; without pins the usual rules apply.
func (s *state) client(pinning bool, pinned []*x509.Certificate, shown ...tls.Certificate) (*http.Client, error) {
	settings := &tls.Config{MinVersion: tls.VersionTLS13, RootCAs: s.authorities, Certificates: shown}
	if pinning {
		if len(pinned) == 0 {
			return nil, errUnpinned
		}
		settings.InsecureSkipVerify = true // not skipped: VerifyConnection verifies without the host name
		settings.VerifyConnection = func(connection tls.ConnectionState) error {
			return verifyChain(connection.PeerCertificates, poolOf(pinned), x509.ExtKeyUsageServerAuth)
		}
	}
	return &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			DialContext: (&net.Dialer{Timeout: dialTime}).DialContext, TLSHandshakeTimeout: dialTime,
			TLSClientConfig: settings, DisableKeepAlives: true, DisableCompression: true,
		},
	}, nil
}

func poolOf(certificates []*x509.Certificate) *x509.CertPool {
	pool := x509.NewCertPool()
	for _, certificate := range certificates {
		pool.AddCert(certificate)
	}
	return pool
}

// verifyChain verifies a chain as it was sent. A certificate that is in the pool itself is valid.
func verifyChain(chain []*x509.Certificate, roots *x509.CertPool, usage x509.ExtKeyUsage) error {
	if len(chain) == 0 {
		return errors.New("no certificate")
	}
	_, err := chain[0].Verify(x509.VerifyOptions{
		Roots: roots, Intermediates: poolOf(chain[1:]), KeyUsages: []x509.ExtKeyUsage{usage}})
	return err
}

// peerURL returns a URL of another relay's API, as its web server maps it: without the version.
func (s *Server) peerURL(host, path, query string) string {
	to := url.URL{Scheme: "https", Host: net.JoinHostPort(host, strconv.Itoa(s.config.HTTPSPort)), Path: basePath + path, RawQuery: query}
	return to.String()
}

// addVia adds this relay to the relays that a request to another relay has passed; it refuses a request that has passed
// this relay before, or too many.
func (s *Server) addVia(to http.Header, came http.Header) error {
	hops := came.Values("Via")
	if len(hops) >= limits.Depth || slices.Contains(hops, s.via()) {
		return errLoop
	}
	to["Via"] = append(slices.Clone(hops), s.via())
	to.Set("User-Agent", "rudder-relayd/"+s.version)
	return nil
}

func (s *Server) via() string { return "1.1 " + s.self }

// plainBranch forwards a remote run to a child relay in the strict dialect, and returns its answer line by line.
func (s *Server) plainBranch(ctx context.Context, known *state, relay string, b branch, run *remoteRun, to sink) error {
	client, err := known.client(s.pinning(), known.certificates[relay])
	if err != nil {
		return err
	}
	path := "remote-run/all"
	if !b.all {
		path = "remote-run/nodes"
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.peerURL(known.nodes[relay].Hostname, path, ""),
		strings.NewReader(run.form(b).Encode()))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return s.ask(client, request, run, limits.RunLine, func(lines []byte) bool { return to.lines("", lines) })
}

// ask returns the answer of a child relay line by line. It disconnects a relay that is silent for too long.
func (s *Server) ask(client *http.Client, request *http.Request, run *remoteRun, limit int, emit func([]byte) bool) error {
	ctx, cancel := context.WithCancelCause(request.Context())
	defer cancel(nil)
	silence := s.afterFunc(s.config.BranchSilence, func() {
		cancel(fmt.Errorf("it has sent nothing for %s", s.config.BranchSilence))
	})
	defer silence.Stop()
	if err := s.addVia(request.Header, run.came); err != nil {
		return err
	}
	response, err := client.Do(request.WithContext(ctx))
	if err != nil {
		return errors.Join(err, context.Cause(ctx))
	}
	defer response.Body.Close()
	if response.StatusCode/100 != 2 {
		why, _ := io.ReadAll(io.LimitReader(response.Body, limits.PeerReason))
		return fmt.Errorf("it answered %s: %s", response.Status, why)
	}
	// The silence does not count while a slow reader holds lines up.
	err = eachLine(&activityReader{response.Body, func() { silence.Reset(s.config.BranchSilence) }}, limit, func(lines []byte) bool {
		silence.Stop()
		defer silence.Reset(s.config.BranchSilence)
		return emit(lines)
	})
	return errors.Join(err, context.Cause(ctx))
}

// activityReader calls `note` after every read.
type activityReader struct {
	from io.Reader
	note func()
}

func (h *activityReader) Read(into []byte) (int, error) {
	n, err := h.from.Read(into)
	h.note()
	return n, err
}
