package app_test

import (
	"crypto/tls"
	"net/http"
	"strings"
	"testing"
)

// A browser adds the user's certificate or session to requests of any page.
func TestChangesFromPagesOfOtherSitesAreRefused(t *testing.T) {
	w, _ := startWithStatus(t, relaying)
	cookie := w.signIn()
	session := []string{"Cookie", cookie.Name + "=" + cookie.Value}
	operator, page := w.operator(alice), w.statusClient()
	rudder := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	legacy := oldClient(w.runA, w.leaf("logs", "n1"))
	result := "https://" + w.address() + "/api/v1/results/by-node/n1/logs"
	for _, marks := range [][]string{
		{"Origin", "https://evil.example", "Sec-Fetch-Site", "cross-site", "Content-Type", "text/plain"},
		{"Sec-Fetch-Site", "same-site"}, {"Origin", "https://evil.example"}, {"Origin", "null"},
	} {
		for _, c := range []struct {
			client      *http.Client
			method, url string
			header      []string
		}{
			{operator, "POST", w.url("/api/v1/runs"), nil},
			{operator, "POST", w.url("/api/v1/runs/" + runA + ":cancel"), nil},
			{operator, "POST", w.url("/api/v1/dashboard-links"), nil},
			{page, "POST", w.page("/logout"), session},
			{legacy, "PUT", result, nil},
			{rudder, "POST", "https://" + w.gateway.Addresses.Rudder + "/rudder/relay-api/remote-run/all", nil},
		} {
			a := call(t, c.client, c.method, c.url, strings.NewReader("{}"), append(c.header, marks...)...)
			if body := decode(t, a.body); a.code != 403 || body["reason"] != "CROSS_SITE_REQUEST" || body["next_step"] == "" {
				t.Errorf("%v %s: %d %s", marks, c.url, a.code, a.body)
			}
		}
		if a := call(t, operator, "GET", w.url("/api/v1/runs"), nil, marks...); a.code != 200 {
			t.Errorf("%v: reading: %d %s", marks, a.code, a.body)
		}
	}
	for _, marks := range [][]string{
		nil, {"Content-Type", "application/x-www-form-urlencoded"}, {"Sec-Fetch-Site", "none"},
		{"Origin", w.url(""), "Sec-Fetch-Site", "same-origin"}, {"Origin", w.url("")},
	} {
		if a := call(t, operator, "POST", w.url("/api/v1/dashboard-links"), strings.NewReader("{}"), marks...); a.code != 200 {
			t.Errorf("%v: %d %s", marks, a.code, a.body)
		}
	}
	if a := call(t, page, "POST", w.page("/logout"), nil, append(session, "Origin", w.page(""), "Sec-Fetch-Site", "same-origin")...); a.code != 204 {
		t.Errorf("the dashboard's own request: %d %s", a.code, a.body)
	}
}
