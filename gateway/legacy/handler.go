package legacy

import (
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"muster.example/gateway/fleet"
	"muster.example/gateway/inspect"
	"muster.example/gateway/limits"
	"muster.example/gateway/listen"
	musterv1 "muster.example/proto/gen/go/muster/v1"
	"muster.example/services/client/go"
	"muster.example/services/client/go/peer"
	"muster.example/services/client/go/reasons"
)

// Deliverer delivers to the aggregator for the client in the context (fleet.WithClient); *muster.Client implements it.
type Deliverer interface {
	Submit(context.Context, *muster.Delivery) (*muster.Result, error)
	ReportProgress(context.Context, muster.Key, muster.Progress) error
}

// handler serves the listener of one run. Safe for concurrent use.
type handler struct {
	run        string
	planned    func(plugin string) bool
	deliver    Deliverer
	heartbeats musterv1.HeartbeatServiceClient
	revoked    *fleet.Revoked
	metrics    *inspect.Metrics
	log        *slog.Logger
	hold       time.Duration
	limit      int64           // bytes of a result; 0: no limit
	living     context.Context // ends deliveries when the gateway cannot wait any longer
}

// smallResult is the size up to which a result is received before the aggregator is asked: it takes one call.
const smallResult = 64 << 10

// ServeHTTP implements http.Handler.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	stream := h.body(r)
	if clean := cleanPath(r.URL.Path); clean != r.URL.Path {
		// A request has no fragment (RFC 9112, 3.2), so Go leaves a # in the query; in Location it would begin one.
		to := url.URL{Path: clean, RawQuery: strings.ReplaceAll(r.URL.RawQuery, "#", "%23")}
		w.Header().Set("Location", to.String())
		h.refused(r, "none", w, stream, http.StatusMovedPermanently, "")
		return
	}
	route, node, plugin, known := match(r.Method, r.URL.Path)
	switch {
	case known && route == nil:
		h.refused(r, "none", w, stream, http.StatusMethodNotAllowed, "")
		return
	case route == nil:
		h.refused(r, "none", w, stream, http.StatusNotFound,
			"no such path: results go to /api/v1/results/by-node/NODE/PLUGIN or /api/v1/results/global/PLUGIN")
		return
	}
	plugin, extension := splitExtension(plugin, h.planned)
	key := muster.Key{Run: h.run, Plugin: plugin, Node: node}
	if text := h.forbidden(r, key); text != "" {
		h.refused(r, route.Path, w, stream, http.StatusForbidden, text)
		return
	}
	leaf := r.TLS.PeerCertificates[0]
	id, _ := peer.FromCertificate(leaf) // forbidden has checked it
	// A completely received result is committed even if its sender has disconnected.
	ctx, done, err := h.revoked.Begin(fleet.WithClient(h.living, leaf, id), leaf, id)
	if err != nil {
		h.metrics.RefusedIdentity("run", h.log, id.URI, r.RemoteAddr, err)
		h.refused(r, route.Path, w, stream, http.StatusForbidden, err.Error())
		return
	}
	defer done()
	switch route.Method {
	case http.MethodGet:
		h.health(ctx, w, r, route, key)
		return
	case http.MethodPost:
		h.progress(ctx, w, r, stream, route, key)
		return
	}
	h.put(ctx, w, r, stream, route, key, id, extension)
}

// forbidden returns why the client may not deliver for the pair; empty if it may.
func (h *handler) forbidden(r *http.Request, key muster.Key) string {
	pair := strconv.Quote(key.Plugin + "/" + key.Node)
	if !peer.ValidName(key.Plugin) || !peer.ValidName(key.Node) || !h.planned(key.Plugin) {
		return "not expected in run " + h.run + ": " + pair + " (" + reasons.PairNotPlanned + ")"
	}
	id, err := peer.FromCertificate(r.TLS.PeerCertificates[0])
	if err == nil {
		err = id.DeliversFor(h.run, key.Plugin, key.Node)
	}
	if err != nil {
		h.metrics.RefusedIdentity("run", h.log, listen.Describe(r.TLS.PeerCertificates[0]), r.RemoteAddr, err)
		return "the certificate does not permit to deliver " + pair + ": " + err.Error() + " (" + reasons.NotYours + ")"
	}
	return ""
}

// body returns the request's body with the limits for legacy clients, and counts its bytes.
func (h *handler) body(r *http.Request) *body {
	chunked := r.ProtoMajor == 1 && len(r.TransferEncoding) > 0
	return &body{from: r.Body, chunked: chunked, limit: h.limit, count: func(n int) { h.metrics.DeliveredBytes.Add(float64(n)) }}
}

// put delivers a result, and answers when it is committed.
func (h *handler) put(ctx context.Context, w http.ResponseWriter, r *http.Request, stream *body, route *Route,
	key muster.Key, id peer.Identity, extension string) {
	h.metrics.DeliveriesActive.Inc()
	defer h.metrics.DeliveriesActive.Dec()
	started := time.Now()
	log := h.log.With("plugin", key.Plugin, "node", key.Node)
	if h.limit > 0 && r.ContentLength > h.limit {
		stream.refuse(w, r, func() { h.count(route.Path, answerFailure(w, errTooLarge)) })
		return
	}
	if r.Header.Get("Content-Range") != "" { // RFC 9110, 14.5: a part must not be stored as the whole
		h.refused(r, route.Path, w, stream, http.StatusBadRequest,
			"Content-Range is not supported: send the whole result in one request, without this header")
		return
	}
	if r.ProtoMajor == 1 && r.ContentLength == 0 && r.Header.Get("Content-Length") == "" {
		// RFC 9112, 6.3: the request has no body, but a client that forgot the length has one.
		h.answered(r, route.Path, w, http.StatusLengthRequired,
			"neither Content-Length nor chunks: an empty result needs Content-Length: 0")
		return
	}
	// The client numbers the attempt: a later request starts a new upload, because its bytes may differ.
	delivery := &muster.Delivery{
		Key:       key,
		MediaType: mediaType(r.Header.Get("Content-Type"), extension),
		FileName:  fileName(r.Header.Get("Content-Disposition"), extension),
		Hold:      h.hold,
		Forwarded: true,
	}
	delivery.Body = stream
	// A result that cannot be stored is refused before its body is sent.
	delivery.OpenFirst = r.ContentLength > smallResult || (r.ContentLength < 0 && stream.awaited(r))
	if r.Header.Get("Content-Disposition") == "" && r.ContentLength > 0 && r.ContentLength <= limits.ErrorReport {
		delivery.Body = sniffError(stream, delivery)
	}
	result, err := h.deliver.Submit(ctx, delivery)
	if err != nil {
		stream.refuse(w, r, func() {
			code := answerFailure(w, err)
			h.count(route.Path, code)
			log.Warn("result not stored", "code", code, "bytes", stream.total, "uri", id.URI, "error", err)
		})
		return
	}
	h.answered(r, route.Path, w, http.StatusOK, "")
	log.Info("result stored", "bytes", result.Size, "generation", result.Generation, "uri", id.URI,
		"seconds", time.Since(started).Seconds())
}

// answered ends a request with a code and, for an error, one line.
func (h *handler) answered(r *http.Request, route string, w http.ResponseWriter, code int, text string) {
	h.count(route, code)
	if code >= http.StatusBadRequest {
		h.log.Debug("request refused", "method", r.Method, "path", strings.ToValidUTF8(r.URL.Path, "?"), "code", code)
	}
	refuse(w, code, text)
}

// refused is the same for a request whose body was not read to its end.
func (h *handler) refused(r *http.Request, route string, w http.ResponseWriter, stream *body, code int, text string) {
	stream.refuse(w, r, func() { h.answered(r, route, w, code, text) })
}

func (h *handler) count(route string, code int) {
	h.metrics.Requests.WithLabelValues("run", route, strconv.Itoa(code)).Inc()
}
