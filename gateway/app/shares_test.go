package app_test

import (
	"slices"
	"strings"
	"testing"

	musterv1 "muster.example/proto/gen/go/muster/v1"
)

func TestRESTServesSharedFiles(t *testing.T) {
	w := start(t)
	w.relay.Share(&musterv1.Share{
		File:  &musterv1.SharedFile{Key: &musterv1.ShareKey{Source: "n1", Target: "n2", Id: "report.csv"}, Size: 3},
		State: musterv1.ShareState_SHARE_STATE_DELIVERED, Relay: "r1"})
	client := w.operator(alice)
	if a := call(t, client, "GET", w.url("/api/v1/shares"), nil); a.code != 200 || strings.Contains(a.body, "report.csv") ||
		!strings.Contains(a.body, `"quota":"1000"`) {
		t.Error(a)
	}
	if a := call(t, client, "GET", w.url("/api/v1/shares?relay=r1"), nil); a.code != 200 || !strings.Contains(a.body, `"report.csv"`) ||
		!strings.Contains(a.body, `"bytes":"3"`) {
		t.Error(a)
	}
	const path = "/api/v1/shares/n1/n2/report.csv"
	if a := call(t, client, "GET", w.url(path), nil); decode(t, a.body)["state"] != "SHARE_STATE_DELIVERED" {
		t.Error(a)
	}
	if a := call(t, client, "DELETE", w.url(path+"?relay=r2"), nil); a.code != 404 || decode(t, a.body)["reason"] != "SHARE_NOT_FOUND" {
		t.Error(a)
	}
	if a := call(t, client, "DELETE", w.url(path+"?relay=r1"), nil); a.code != 200 {
		t.Error(a)
	}
	if a := call(t, client, "GET", w.url(path), nil); a.code != 404 {
		t.Error(a)
	}
	// Ids with dot segments have no route, or are forwarded unchanged and refused by the relay.
	for _, id := range []string{"..", "%2e%2e", "..%2fx", "a/b", "%2e%2e%2f%2e%2e%2fetc", ""} {
		if a := call(t, client, "GET", w.url("/api/v1/shares/n1/n2/"+id), nil); a.code == 200 {
			t.Errorf("%q: %v", id, a)
		}
	}
	if callers := slices.Compact(w.relay.Callers()); !slices.Equal(callers, []string{"[" + alice + "]"}) {
		t.Error(callers)
	}
}

func TestSharedFilesWithoutRelayAreUnavailable(t *testing.T) {
	w := start(t, func(w *testGateway) { w.config.RelayTargets = nil })
	for method, path := range map[string]string{"GET": "/api/v1/shares", "DELETE": "/api/v1/shares/n1/n2/f"} {
		if a := call(t, w.operator(alice), method, w.url(path), nil); a.code != 503 || !strings.Contains(a.body, `"NO_RELAY"`) {
			t.Errorf("%s %s: %d %s", method, path, a.code, a.body)
		}
	}
}
