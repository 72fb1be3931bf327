package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"
)

// oddTexts are values that a client may send where a text belongs, as bytes.
var oddTexts = map[string]string{
	"Latin-1": latin1, "NUL": "a\x00b", "line ends": "a\r\nb\nc", "a half character": "\xe2\x82", "controls": "\x1b[31m\x7f",
	"long": strings.Repeat("n", 20_000), "spaces": "   ", "direction": "a\u202eb",
}

// document is the part of the OpenAPI document that describes requests.
type document struct {
	Paths       map[string]map[string]json.RawMessage
	Definitions map[string]schema
}

type schema struct {
	Ref        string `json:"$ref"`
	Type       string
	Properties map[string]schema
	Items      *schema
}

type parameter struct {
	Name, In string
	Schema   *schema
}

// bodies returns a JSON body for each field of a type that can hold a text, with the text in it and nothing else.
func (d *document) bodies(of schema, text string, depth int) (all []string) {
	if of.Ref != "" {
		of = d.Definitions[strings.TrimPrefix(of.Ref, "#/definitions/")]
	}
	switch {
	case depth == 0:
	case of.Type == "string":
		return []string{`"` + text + `"`} // the bytes themselves: not escaped
	case of.Type == "array" && of.Items != nil:
		for _, item := range d.bodies(*of.Items, text, depth-1) {
			all = append(all, "["+item+"]")
		}
	case of.Properties != nil:
		for name, property := range of.Properties {
			for _, value := range d.bodies(property, text, depth-1) {
				all = append(all, `{"`+name+`":`+value+`}`)
			}
		}
		slices.Sort(all)
	}
	return all
}

var pathName = regexp.MustCompile(`\{[^}]*\}`)

// oddRequests returns requests of every route of the document with odd texts in path, query, body and headers.
func oddRequests(t *testing.T, d *document, base, run string) (all []*http.Request) {
	t.Helper()
	add := func(method, address, body string, header ...string) {
		request, err := http.NewRequest(method, address, strings.NewReader(body))
		check(t, err)
		for i := 0; i < len(header); i += 2 {
			request.Header[header[i]] = []string{header[i+1]}
		}
		all = append(all, request)
	}
	for path, methods := range d.Paths {
		plain := base + pathName.ReplaceAllString(strings.Replace(path, "{run}", run, 1), "x")
		for method, text := range methods {
			var operation struct{ Parameters []parameter }
			first, _, _ := strings.Cut(strings.TrimPrefix(path, "/api/v1/"), "/")
			if method == "parameters" || !strings.HasPrefix(path, "/api/") || slices.Contains([]string{"results", "progress", "health"}, first) {
				continue
			}
			check(t, json.Unmarshal(text, &operation))
			method = strings.ToUpper(method)
			for _, odd := range oddTexts {
				escaped := url.PathEscape(odd)
				if strings.Contains(path, "{") {
					add(method, base+pathName.ReplaceAllLiteralString(path, escaped), "{}")
				}
				add(method, plain+"?"+url.QueryEscape(odd)+"="+url.QueryEscape(odd), "{}")
				header := strings.Map(func(r rune) rune { // the client library refuses controls
					if r < ' ' || r == 0x7f {
						return '_'
					}
					return r
				}, odd[:min(len(odd), 2000)])
				if odd == latin1 {
					header = latin1
				}
				add(method, plain, "{}", "Accept", header, "Content-Type", header, "Range", header, "If-None-Match", header)
				for _, p := range operation.Parameters {
					switch {
					case p.In == "query":
						name, _, _ := strings.Cut(p.Name, "[")
						add(method, plain+"?"+url.QueryEscape(name)+"="+url.QueryEscape(odd), "")
					case p.In == "body" && p.Schema != nil:
						for _, body := range append(d.bodies(*p.Schema, odd, 4), odd, `{"`+odd+`":1}`) {
							add(method, plain, body, "Content-Type", "application/json")
						}
					}
				}
			}
			add(method, plain, "--b\r\nContent-Disposition: form-data; name=\"f\"; filename=\"caf\xe9\"\r\n\r\n\x00\r\n--b--\r\n",
				"Content-Type", "multipart/form-data; boundary=b")
		}
	}
	return all
}

// Whatever bytes an operator's programs send to any route: an answer comes, it is valid JSON in UTF-8, and not an
// internal error. The feed, the status and a restart continue.
func TestOddBytesInEveryRouteAreAnswered(t *testing.T) {
	t.Parallel()
	f := up(t)
	ctx := context.Background()
	id := run(t, f, []string{sidecarPlugin("logs", "DaemonSet")}, "n1", "n2")
	o := must(f.Operator())(t)
	client := must(o.HTTP())(t)
	client.Timeout = soon
	var d document
	response := must(client.Get(o.Gateway[0] + "/api/v1/openapi.json"))(t)
	check(t, json.NewDecoder(response.Body).Decode(&d))
	response.Body.Close()
	requests := oddRequests(t, &d, o.Gateway[0], id)
	if len(requests) < 1000 {
		t.Errorf("only %d requests", len(requests))
	}
	work := make(chan *http.Request)
	var senders sync.WaitGroup
	for range 8 {
		senders.Go(func() {
			for request := range work {
				if request.Method == http.MethodDelete && strings.HasSuffix(request.URL.Path, "/runs/"+id) ||
					strings.HasSuffix(request.URL.Path, id+":cancel") {
					continue // the run is needed below
				}
				sendOdd(t, client, request)
			}
		})
	}
	for _, request := range requests {
		work <- request
	}
	close(work)
	senders.Wait()

	credential := must(f.Export(id, "logs", "n1"))(t)
	sidecar := must(credential.HTTP())(t)
	sidecar.Timeout = soon
	for name, odd := range oddTexts {
		quoted, _ := json.Marshal(odd)
		for _, body := range []string{`{"msg":"` + odd + `"}`, `{"failures":["` + odd + `"]}`, `{"msg":` + string(quoted) + `}`, odd} {
			post := must(http.NewRequest("POST", credential.AggregatorURL+"/api/v1/progress/by-node/n1/logs", strings.NewReader(body)))(t)
			if code := codeOf(t, sidecar, post); code >= 500 {
				t.Errorf("progress with %s: %d", name, code)
			}
		}
		put := must(http.NewRequest("PUT", credential.AggregatorURL+"/api/v1/results/by-node/"+url.PathEscape(odd)+"/logs", strings.NewReader("x")))(t)
		if code := codeOf(t, sidecar, put); code >= 500 || code == 200 {
			t.Errorf("a result of node %s: %d", name, code)
		}
	}
	put := must(http.NewRequest("PUT", credential.AggregatorURL+"/api/v1/results/by-node/n1/logs", strings.NewReader("x")))(t)
	put.Header["Content-Disposition"] = []string{"attachment;filename=" + latin1}
	put.Header["Content-Type"] = []string{"text/plain; charset=" + latin1}
	if code := codeOf(t, sidecar, put); code != 200 {
		t.Errorf("a result with an odd name: %d", code)
	}
	if got := operator(t, f).result(t, id, "logs", "n1"); !utf8.ValidString(got.FileName) || got.Size != 1 {
		t.Errorf("stored %+v", got)
	}

	goesOn := func() {
		t.Helper()
		next := run(t, f, []string{execPlugin("p", "DaemonSet", `echo x > "$RESULTS_DIR/x"; echo "$RESULTS_DIR/x" > "$RESULTS_DIR/done"`)}, "n1")
		check(t, f.Agent(ctx, must(f.Export(next, "p", "n1"))(t)))
		must(f.Muster("wait", next))(t)
		_, err := f.Muster("status", id, "--json")
		wantExit(t, err, 7) // n2 has no result
	}
	goesOn()
	must(f.Muster("down"))(t)
	check(t, f.Up())
	goesOn()
}

// sendOdd sends a request; its answer has to be valid, and no internal error.
func sendOdd(t *testing.T, client *http.Client, request *http.Request) {
	name := fmt.Sprintf("%s %.200q", request.Method, request.URL)
	response, err := client.Do(request)
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	defer response.Body.Close()
	if strings.HasSuffix(request.URL.Path, ":watch") && response.StatusCode == 200 {
		return // it does not end
	}
	content, err := io.ReadAll(response.Body)
	var value any
	if err != nil || response.StatusCode >= 500 && response.StatusCode != http.StatusNotImplemented || !utf8.Valid(content) ||
		len(content) > 0 && strings.HasPrefix(response.Header.Get("Content-Type"), "application/json") && json.Unmarshal(content, &value) != nil {
		t.Errorf("%s: %d %.300q %v", name, response.StatusCode, content, err)
	}
}

// codeOf sends a request and returns the code of its answer.
func codeOf(t *testing.T, client *http.Client, request *http.Request) int {
	t.Helper()
	response, err := client.Do(request)
	if err != nil {
		t.Errorf("%s %.200q: %v", request.Method, request.URL, err)
		return 0
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body)
	return response.StatusCode
}
