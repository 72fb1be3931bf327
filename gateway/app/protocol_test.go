package app_test

import (
	"net/http"
	"testing"
)

func TestRefusalsHaveHeadersOfHTTP(t *testing.T) {
	w, _ := startWithStatus(t)
	w.aggregator.Archives[runA] = []byte("archive")
	for _, c := range []struct {
		method, url  string
		send         []string
		code         int
		name, header string
	}{
		{"PATCH", w.url("/api/v1/runs"), nil, 405, "Allow", "GET, POST"},
		{"POST", w.url("/api/v1/runs/" + runA + "/status"), nil, 405, "Allow", "GET"},
		{"GET", w.url(archivePath), []string{"Range", "bytes=100-"}, 416, "Content-Range", "bytes */7"},
		{"GET", w.page("/logout"), nil, 405, "Allow", "POST"},
		{"POST", w.page("/status"), nil, 405, "Allow", "GET, HEAD"},
		{"HEAD", w.page("/status"), []string{"Accept", "text/event-stream"}, 200, "Content-Type", "text/event-stream"},
	} {
		if a := call(t, w.operator(alice), c.method, c.url, nil, c.send...); a.code != c.code || a.header.Get(c.name) != c.header {
			t.Errorf("%s %s: %d %v", c.method, c.url, a.code, a.header)
		}
	}
}

// A proxy in between must not keep messages back.
func TestStreamsAreNotBuffered(t *testing.T) {
	w, _ := startWithStatus(t)
	for _, url := range []string{w.page("/status"), w.url("/api/v1/runs/" + runA + "/status:watch")} {
		request, _ := http.NewRequest("GET", url, nil)
		request.Header.Set("Accept", "text/event-stream")
		response, err := w.operator(alice).Do(request)
		if err != nil {
			t.Fatal(err)
		}
		if response.Body.Close(); response.Header.Get("X-Accel-Buffering") != "no" {
			t.Errorf("%s: %v", url, response.Header)
		}
	}
}

// Old workers send a body to its end before they read the answer.
func TestRefusedPathsReadBody(t *testing.T) {
	w := start(t)
	for path, code := range map[string]int{"/nothing": 404, "//api/v1/results/global/e2e": 301, "/api/v1/progress/global/e2e": 405} {
		body := &counting{Reader: stream(8 << 20)}
		a, err := try(oldClient(w.runA, w.leaf("e2e", "global")), "PUT", "https://"+w.address()+path, body)
		if err != nil || a.code != code || body.n.Load() != 8<<20 {
			t.Errorf("%s: %v %d after %d bytes", path, err, a.code, body.n.Load())
		}
	}
}
