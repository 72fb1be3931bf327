package dashboard

import (
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
)

func get(t *testing.T, method, target string, header ...string) *http.Response {
	t.Helper()
	request := httptest.NewRequest(method, target, nil)
	for i := 0; i < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	recorder := httptest.NewRecorder()
	Handler().ServeHTTP(recorder, request)
	return recorder.Result()
}

func body(t *testing.T, response *http.Response) string {
	t.Helper()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestPageUsesOnlyOwnFiles(t *testing.T) {
	page := body(t, get(t, "GET", "/"))
	named := regexp.MustCompile(`(?:src|href)="([^"]+)"`).FindAllStringSubmatch(page, -1)
	if len(named) < 3 {
		t.Fatalf("index.html names only %v", named)
	}
	for _, name := range named {
		answer := get(t, "GET", "/"+name[1])
		if answer.StatusCode != 200 || answer.Header.Get("Content-Type") == "" {
			t.Errorf("%s: %d %v", name[1], answer.StatusCode, answer.Header)
		}
	}
	for _, inline := range []string{"<script>", "<style", " style=", " onload=", "http:", "https:"} {
		if strings.Contains(page, inline) {
			t.Errorf("index.html holds %q", inline)
		}
	}
	if style := body(t, get(t, "GET", "/style.css")); regexp.MustCompile(`url\(|@import`).MatchString(style) {
		t.Error("the style sheet fetches a resource")
	}
}

func TestPageHeadersAreStrict(t *testing.T) {
	for _, target := range []string{"/", "/index.html", "/app.js", "/style.css", "/icon.svg"} {
		header := get(t, "GET", target).Header
		for name, want := range map[string]string{
			"X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer",
			"Cache-Control": "no-cache", "Content-Security-Policy": policy,
		} {
			if header.Get(name) != want {
				t.Errorf("%s: %s is %q", target, name, header.Get(name))
			}
		}
	}
	for _, word := range []string{"default-src 'none'", "frame-ancestors 'none'", "script-src 'self';", "style-src 'self';"} {
		if !strings.Contains(policy, word) {
			t.Errorf("the policy lacks %s", word)
		}
	}
	if strings.Contains(policy, "unsafe") {
		t.Error("the policy allows an unsafe source")
	}
}

func TestPageFilesAreCacheable(t *testing.T) {
	page := body(t, get(t, "GET", "/"))
	script := "/" + regexp.MustCompile(`app\.js\?v=[0-9a-f]+`).FindString(page)
	first := get(t, "GET", script)
	if cache := first.Header.Get("Cache-Control"); !strings.Contains(cache, "immutable") {
		t.Errorf("%s: %s", script, cache)
	}
	for _, other := range []string{"/app.js", "/app.js?v=", "/app.js?v=0123456789abcdef", "/app.js?v=" + first.Header.Get("ETag")[1:3]} {
		if cache := get(t, "GET", other).Header.Get("Cache-Control"); cache != "no-cache" {
			t.Errorf("%s: %s", other, cache)
		}
	}
	if again := get(t, "GET", "/", "If-None-Match", get(t, "GET", "/").Header.Get("ETag")); again.StatusCode != 304 {
		t.Errorf("asked again with the ETag: %d", again.StatusCode)
	}
}

func TestOtherPathsAndMethodsAreRefused(t *testing.T) {
	for _, target := range []string{"/dist/app.js", "/app.ts", "/src/main.tsx", "/../dashboard.go", "/api/v1/runs", "/favicon.ico"} {
		if code := get(t, "GET", target).StatusCode; code != 404 {
			t.Errorf("%s: %d", target, code)
		}
	}
	if code := get(t, "POST", "/").StatusCode; code != 405 {
		t.Errorf("POST: %d", code)
	}
}
