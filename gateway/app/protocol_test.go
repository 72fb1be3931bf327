package app_test

import (
	"io"
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
		conn := w.dial(w.leaf("e2e", "global"))
		_, _ = io.WriteString(conn, request("PUT", path, "Content-Length: 8388608\r\n", ""))
		if sent, err := io.Copy(conn, stream(8<<20)); err != nil {
			t.Errorf("%s: %v after %d bytes", path, err, sent)
			continue
		}
		if a := readAnswer(t, conn); a.code != code {
			t.Errorf("%s: %d %s", path, a.code, a.body)
		}
	}
}
