package rudder

import (
	"io"
	"mime"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"muster.example/gateway/limits"
)

var conditionRule = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9_]*$`)

// rejection is the error of a request that has a route: it is answered 400 with this text.
type rejection string

func (r rejection) Error() string { return string(r) }

// parseRun parses the form for `all`, `nodes` or `nodes/<id>`.
func parseRun(target string, form url.Values) (*remoteRun, error) {
	run := &remoteRun{all: target == "all"}
	var err error
	if run.async, err = flag(form, "asynchronous"); err != nil {
		return nil, err
	}
	if run.keep, err = flag(form, "keep_output"); err != nil {
		return nil, err
	}
	conditions := form.Get("classes")
	if form.Has("conditions") {
		conditions = form.Get("conditions")
	}
	if run.conditions, err = parseConditions(conditions); err != nil {
		return nil, err
	}
	id, single := strings.CutPrefix(target, "nodes/")
	switch {
	case single:
		run.nodes = []string{id}
	case run.all:
	case !form.Has("nodes"):
		return nil, rejection("Missing nodes")
	default:
		run.nodes = strings.Split(form.Get("nodes"), ",")
	}
	return run, nil
}

func flag(form url.Values, name string) (bool, error) {
	switch value := form.Get(name); {
	case value == "true":
		return true, nil
	case value == "false", !form.Has(name):
		return false, nil
	default:
		return false, rejection("invalid " + name + ": " + value + ", should be true or false")
	}
}

func parseConditions(text string) ([]string, error) {
	if text == "" {
		return nil, nil
	}
	conditions := strings.Split(text, ",")
	for _, condition := range conditions {
		if len(condition) > limits.Condition {
			return nil, rejection("invalid condition: more than the maximum of " + strconv.Itoa(limits.Condition) + " characters")
		}
		if !conditionRule.MatchString(condition) {
			return nil, rejection("invalid condition: " + condition + ", should match " + conditionRule.String())
		}
	}
	return conditions, nil
}

// form returns the request for the next relay, for nodes of its branch.
func (r *remoteRun) form(b branch) url.Values {
	form := url.Values{"asynchronous": {strconv.FormatBool(r.async)}, "keep_output": {strconv.FormatBool(r.keep)}}
	if len(r.conditions) > 0 {
		form.Set("classes", strings.Join(r.conditions, ","))
	}
	if !b.all {
		form.Set("nodes", strings.Join(b.ids, ","))
	}
	return form
}

// serveRemoteRun answers POST remote-run/<target>. `target` is all, nodes or nodes/<id>.
func (s *Server) serveRemoteRun(w http.ResponseWriter, r *http.Request, target string) {
	if !s.config.RemoteRun {
		s.log.Warn("remote run is disabled (rudder.remote_run)", "remote", r.RemoteAddr)
	}
	if r.Method != http.MethodPost || !s.config.RemoteRun {
		notFound(w)
		return
	}
	if !s.bounded(w, r, limits.RunForm) {
		return
	}
	form, ok := s.readForm(w, r)
	if !ok {
		return
	}
	run, err := parseRun(target, form)
	if err != nil {
		answer(w, http.StatusBadRequest, err.Error())
		return
	}
	run.came = r.Header
	s.start(w, r, run)
}

// readForm reads a form, or answers the request if it is invalid.
func (s *Server) readForm(w http.ResponseWriter, r *http.Request) (url.Values, bool) {
	if given := r.Header.Get("Content-Type"); given != "" {
		if kind, _, err := mime.ParseMediaType(given); err != nil || kind != "application/x-www-form-urlencoded" {
			notFound(w)
			return nil, false
		}
	}
	text, err := io.ReadAll(s.newIdleReader(w, r))
	if err != nil {
		answer(w, http.StatusInternalServerError, "INTERNAL SERVER ERROR")
		return nil, false
	}
	// A semicolon is part of a value (URL Standard, application/x-www-form-urlencoded); Go refuses it.
	form, err := url.ParseQuery(strings.ReplaceAll(string(text), ";", "%3B"))
	if err != nil {
		notFound(w)
		return nil, false
	}
	return form, true
}
