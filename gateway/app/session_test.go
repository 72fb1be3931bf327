package app_test

import (
	"bufio"
	"net/http"
	"strings"
	"testing"
	"time"

	"muster.example/services/client/go/mustertest"
)

// link requests a link as `muster dashboard` does.
func (w *testGateway) link() string {
	w.t.Helper()
	a := call(w.t, w.operator(alice), "POST", w.url("/api/v1/dashboard-links"), strings.NewReader("{}"))
	members := decode(w.t, a.body)
	link, _ := members["url"].(string)
	if a.code != 200 || !strings.HasPrefix(link, w.page("/login?token=")) || members["expires_in_seconds"] != 60.0 ||
		a.header.Get("Cache-Control") != "no-store" {
		w.t.Fatalf("%d %s", a.code, a.body)
	}
	return link
}

// signIn returns the cookie of a session of alice.
func (w *testGateway) signIn() *http.Cookie {
	w.t.Helper()
	a := call(w.t, w.statusClient(), "GET", w.link(), nil)
	cookie, err := http.ParseSetCookie(a.header.Get("Set-Cookie"))
	if a.code != http.StatusSeeOther || a.header.Get("Location") != "/" || err != nil {
		w.t.Fatalf("%d %v %v", a.code, a.header, err)
	}
	return cookie
}

func TestLinkSignsBrowserInOnce(t *testing.T) {
	w, _ := startWithStatus(t)
	link := w.link()
	first := call(t, w.statusClient(), "GET", link, nil)
	cookie, err := http.ParseSetCookie(first.header.Get("Set-Cookie"))
	if err != nil || first.code != http.StatusSeeOther || first.header.Get("Referrer-Policy") != "no-referrer" {
		t.Fatalf("%d %v", first.code, first.header)
	}
	if !cookie.HttpOnly || !cookie.Secure || cookie.SameSite != http.SameSiteStrictMode || cookie.Path != "/" || cookie.Domain != "" ||
		!strings.HasPrefix(cookie.Name, "__Host-") || cookie.MaxAge <= 0 || len(cookie.Value) < 26 {
		t.Errorf("the cookie is %v", cookie)
	}
	for what, address := range map[string]string{"used": link, "invented": w.page("/login?token=x"), "empty": w.page("/login?token="), "none": w.page("/login")} {
		if a := call(t, w.statusClient(), "GET", address, nil); a.code != 403 || a.header.Get("Set-Cookie") != "" || !strings.Contains(a.body, "muster dashboard") {
			t.Errorf("%s: %d %v %s", what, a.code, a.header, a.body)
		}
	}
	untouched := w.link()
	for _, method := range []string{"HEAD", "POST"} { // link previews must not use the link up
		if a := call(t, w.statusClient(), method, untouched, nil); a.code != 403 {
			t.Errorf("%s: %d", method, a.code)
		}
	}
	if a := call(t, w.statusClient(), "GET", untouched, nil); a.code != http.StatusSeeOther {
		t.Errorf("then GET: %d", a.code)
	}
}

func TestOnlyOperatorsGetLinks(t *testing.T) {
	w, _ := startWithStatus(t)
	for _, uri := range []string{"spiffe://" + mustertest.Domain + "/node/n1", "spiffe://" + mustertest.Domain + "/service/status/s1"} {
		a := call(t, w.operator(uri), "POST", w.url("/api/v1/dashboard-links"), strings.NewReader("{}"))
		if a.code != 403 || decode(t, a.body)["reason"] != "ROLE_NOT_ALLOWED" {
			t.Errorf("%s: %d %s", uri, a.code, a.body)
		}
	}
	client := w.statusClient(viewer(w.runA))
	if a := call(t, client, "POST", w.url("/api/v1/dashboard-links"), nil); a.code != 403 {
		t.Errorf("a viewer: %d %s", a.code, a.body)
	}
	if a := call(t, w.operator(alice), "GET", w.url("/api/v1/dashboard-links"), nil); a.code != 405 {
		t.Errorf("GET: %d", a.code)
	}
}

func TestSessionHasReadPermissionsOfOperator(t *testing.T) {
	w, _ := startWithStatus(t)
	cookie := w.signIn()
	header := []string{"Cookie", cookie.Name + "=" + cookie.Value}
	for path, says := range map[string]string{"/status": runB, "/status?run=" + runA: runA, "/api/v1/runs": runA} {
		if a := call(t, w.statusClient(), "GET", w.page(path), nil, header...); a.code != 200 || !strings.Contains(a.body, says) {
			t.Errorf("%s: %d %s", path, a.code, a.body)
		}
	}
	for _, path := range []string{"/api/v1/runs", "/api/v1/dashboard-links", "/status"} {
		if a := call(t, w.statusClient(), "POST", w.page(path), strings.NewReader("{}"), header...); a.code != 405 {
			t.Errorf("POST %s: %d %s", path, a.code, a.body)
		}
	}
	if a := call(t, w.statusClient(), "GET", w.page("/status"), nil, "Cookie", cookie.Name+"=invented"); a.code != 401 {
		t.Errorf("an invented session: %d", a.code)
	}
	// A client certificate takes precedence over the session.
	if a := call(t, w.statusClient(viewer(w.runA)), "GET", w.page("/status"), nil, header...); !strings.Contains(a.body, `"run":"`+runA) {
		t.Errorf("a viewer with a session: %s", a.body)
	}
	if a := call(t, w.statusClient(viewer(w.runA)), "GET", w.page("/status?run="+runB), nil, header...); a.code != 403 ||
		decode(t, a.body)["reason"] != "NOT_YOURS" {
		t.Errorf("a viewer with a session names another run: %d %s", a.code, a.body)
	}
	if a := call(t, w.statusClient(), "GET", w.page("/logout"), nil, header...); a.code != 405 {
		t.Errorf("GET /logout: %d", a.code)
	}
	if a := call(t, w.statusClient(), "POST", w.page("/logout"), nil, header...); a.code != 204 || !strings.Contains(a.header.Get("Set-Cookie"), "Max-Age=0") {
		t.Errorf("POST /logout: %d %v", a.code, a.header)
	}
	if a := call(t, w.statusClient(), "GET", w.page("/status"), nil, header...); a.code != 401 {
		t.Errorf("after the end of the session: %d", a.code)
	}
}

// Revocation ends the open requests of a session.
func TestSessionOfRevokedOperatorEndsImmediately(t *testing.T) {
	w, _ := startWithStatus(t)
	cookie := w.signIn()
	unused := w.link()
	request, _ := http.NewRequest("GET", w.page("/status"), nil)
	request.AddCookie(cookie)
	request.Header.Set("Accept", "text/event-stream")
	response, err := w.statusClient().Do(request)
	if err != nil || response.StatusCode != 200 {
		t.Fatal(err, response)
	}
	defer response.Body.Close()
	ended := make(chan bool)
	go func() {
		defer close(ended)
		for lines := bufio.NewScanner(response.Body); lines.Scan(); { // to its end
		}
	}()
	w.revoke(alice)
	select {
	case <-ended:
	case <-time.After(20 * time.Second):
		t.Fatal("the events do not end")
	}
	if a := call(t, w.statusClient(), "GET", w.page("/status"), nil, "Cookie", cookie.Name+"="+cookie.Value); a.code != 403 || decode(t, a.body)["reason"] != "REVOKED" {
		t.Errorf("the session: %d %s", a.code, a.body)
	}
	late := call(t, w.statusClient(), "GET", unused, nil)
	if cookie, err := http.ParseSetCookie(late.header.Get("Set-Cookie")); err == nil {
		if a := call(t, w.statusClient(), "GET", w.page("/status"), nil, "Cookie", cookie.Name+"="+cookie.Value); a.code != 403 {
			t.Errorf("a session of a link from before: %d %s", a.code, a.body)
		}
	}
}
