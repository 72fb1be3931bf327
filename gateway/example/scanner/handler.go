package main

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
)

// maxRequest bounds the body of a request to start a scan.
const maxRequest = 64 << 10

// newHandler serves the product's own API.
func newHandler(f *fleet, s *sessions) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /scans", func(w http.ResponseWriter, r *http.Request) {
		var asked struct{ Plugins, Nodes []string }
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxRequest)).Decode(&asked); err != nil {
			http.Error(w, "the body is not a JSON object with plugins and nodes", http.StatusBadRequest)
			return
		}
		run, err := f.start(r.Context(), asked.Plugins, asked.Nodes)
		if err != nil {
			answerError(w, err)
			return
		}
		v, err := f.viewer(r.Context(), run)
		if err != nil {
			answerError(w, err)
			return
		}
		s.begin(w, v)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(map[string]string{"run": run})
	})
	mux.HandleFunc("GET /scans/status", func(w http.ResponseWriter, r *http.Request) { relay(w, r, s, "application/json") })
	mux.HandleFunc("GET /scans/events", func(w http.ResponseWriter, r *http.Request) { relay(w, r, s, "text/event-stream") })
	mux.HandleFunc("DELETE /scans", func(w http.ResponseWriter, r *http.Request) {
		s.end(w, r)
		w.WriteHeader(http.StatusNoContent)
	})
	return mux
}

// relay forwards the status of the session's run to the browser as it arrives.
func relay(w http.ResponseWriter, r *http.Request, s *sessions, accept string) {
	v := s.of(r)
	if v == nil {
		http.Error(w, "this session has no scan", http.StatusUnauthorized)
		return
	}
	response, err := v.open(r.Context(), accept)
	if err != nil {
		answerError(w, err)
		return
	}
	defer response.Body.Close()
	w.Header().Set("Content-Type", response.Header.Get("Content-Type"))
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(response.StatusCode)
	flusher := http.NewResponseController(w)
	buffer := make([]byte, 32<<10)
	for {
		n, err := response.Body.Read(buffer)
		if n > 0 {
			if _, err := w.Write(buffer[:n]); err != nil {
				return
			}
			_ = flusher.Flush()
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				panic(http.ErrAbortHandler) // the response is incomplete
			}
			return
		}
	}
}

func answerError(w http.ResponseWriter, err error) {
	var refused *refusal
	if errors.As(err, &refused) {
		http.Error(w, refused.Error(), refused.code)
		return
	}
	http.Error(w, "the fleet does not respond", http.StatusBadGateway)
}
