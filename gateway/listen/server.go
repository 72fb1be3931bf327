package listen

import (
	"crypto/tls"
	"log/slog"
	"net/http"

	"muster.example/gateway/limits"
)

// NewServer returns a server with the limits that all listeners share, also on the pace of clients. `settings` are those
// of the listener, or nil for HTTP/1.1 only. Its connections are those of TLS or of a Shared. The server's own messages are
// logged at the debug level.
func NewServer(handler http.Handler, settings *tls.Config, log *slog.Logger) *http.Server {
	server := &http.Server{
		Handler:           Paced(handler, DefaultPace),
		TLSConfig:         settings.Clone(), // the server modifies it
		ReadHeaderTimeout: limits.HeaderTime,
		IdleTimeout:       limits.IdleTime,
		MaxHeaderBytes:    int(limits.Header),
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: limits.Streams},
		Protocols:         new(http.Protocols),
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	server.Protocols.SetHTTP1(true)
	if offersHTTP2(settings) {
		server.Protocols.SetHTTP2(true)
		serveHTTP2(server)
	}
	return server
}
