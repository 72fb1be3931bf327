package main

import (
	"io"
	"log"
	"net/http"
)

// relayProgress listens on all interfaces and forwards each request's body as a POST; the server's code and body go
// back to the plugin. It makes one attempt, and answers 500 without a response. A used port is logged and not an error.
func relayProgress(c *config) {
	mux := http.NewServeMux()
	mux.HandleFunc("/progress", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		response, err := send(c.client, http.MethodPost, c.progressURL, http.Header{}, body, 1)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.WriteHeader(response.status)
		if _, err := w.Write(response.body); err != nil {
			log.Printf("progress: %v", err)
		}
	})
	log.Printf("progress: %v", http.ListenAndServe(":"+c.progressPort, mux))
}
