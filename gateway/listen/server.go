package listen

import (
	"crypto/tls"
	"log/slog"
	"net/http"
	"time"
)

// NewServer serves a listener of this package with the limits that all of them have. `settings` are those of
// the listener; nil where HTTP/1.1 is all that is spoken. What the server has to say goes to the log for
// debugging.
func NewServer(handler http.Handler, settings *tls.Config, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler:           handler,
		TLSConfig:         settings.Clone(), // the server writes into it
		ReadHeaderTimeout: 15 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    32 << 10,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
}
