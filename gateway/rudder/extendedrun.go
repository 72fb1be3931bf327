package rudder

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"muster.example/gateway/limits"
)

// parseQuery parses a request of the extended dialect; `id` is the id in the path, if any.
func parseQuery(all bool, id string, query url.Values) (*remoteRun, error) {
	run := &remoteRun{all: all, extended: true}
	known := []string{"output", "async", "classes"}
	if !all && id == "" {
		known = append(known, "nodes")
	}
	if err := onlyOnce(query, known); err != nil {
		return nil, err
	}
	var err error
	if run.keep, err = choice(query, "output", "keep", "discard", true); err != nil {
		return nil, err
	}
	if run.async, err = choice(query, "async", "yes", "no", false); err != nil {
		return nil, err
	}
	if run.conditions, err = parseConditions(query.Get("classes")); err != nil {
		return nil, rejection("classes: " + err.Error())
	}
	switch {
	case all:
	case id != "":
		run.nodes = []string{id}
	case !query.Has("nodes"):
		return nil, rejection("nodes: missing")
	case query.Get("nodes") != "":
		run.nodes = strings.Split(query.Get("nodes"), ",")
	}
	if len(run.nodes) > limits.RunNodes {
		return nil, rejection(fmt.Sprintf("nodes: more than %d", limits.RunNodes))
	}
	field := "nodes"
	if id != "" {
		field = "uuid"
	}
	for _, node := range run.nodes {
		if !isName(node) {
			return nil, rejection(fmt.Sprintf("%s: %.80q is not a valid id", field, node))
		}
	}
	return run, nil
}

// onlyOnce rejects unknown and repeated parameters.
func onlyOnce(query url.Values, known []string) error {
	for name, values := range query {
		if !slices.Contains(known, name) {
			return rejection(fmt.Sprintf("%.80s: unknown parameter; known are %s", name, strings.Join(known, ", ")))
		}
		if len(values) > 1 {
			return rejection(name + ": given more than once")
		}
	}
	return nil
}

// choice parses a parameter with two values.
func choice(query url.Values, name, yes, no string, standard bool) (bool, error) {
	switch value := query.Get(name); {
	case !query.Has(name):
		return standard, nil
	case value == yes, value == no:
		return value == yes, nil
	default:
		return false, rejection(fmt.Sprintf("%s: %.80q, should be %s or %s", name, value, yes, no))
	}
}

// query returns the query for a child relay.
func (r *remoteRun) query(ids []string) string {
	word := func(is bool, yes, no string) string {
		if is {
			return yes
		}
		return no
	}
	query := url.Values{"output": {word(r.keep, "keep", "discard")}, "async": {word(r.async, "yes", "no")}}
	if len(r.conditions) > 0 {
		query.Set("classes", strings.Join(r.conditions, ","))
	}
	if ids != nil {
		query.Set("nodes", strings.Join(ids, ","))
	}
	return query.Encode()
}

// serveExtendedRun answers GET remote-run/all, remote-run/nodes and remote-run/node/<id>.
func (s *Server) serveExtendedRun(w http.ResponseWriter, r *http.Request, all bool, id string) {
	if !s.config.RemoteRun {
		s.log.Warn("remote run is disabled (rudder.remote_run)", "remote", r.RemoteAddr)
		answer(w, http.StatusNotFound, "remote run is disabled")
		return
	}
	if !s.allowed(w, r, http.MethodGet) {
		return
	}
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		answer(w, http.StatusBadRequest, "invalid query: "+err.Error())
		return
	}
	run, err := parseQuery(all, id, query)
	if err != nil {
		answer(w, http.StatusBadRequest, err.Error())
		return
	}
	run.came = r.Header
	s.start(w, r, run)
}

// allowed answers other methods than these with 405.
func (s *Server) allowed(w http.ResponseWriter, r *http.Request, methods ...string) bool {
	if slices.Contains(methods, r.Method) {
		return true
	}
	s.drain(w, r)
	w.Header().Set("Allow", strings.Join(methods, ", "))
	answer(w, http.StatusMethodNotAllowed, r.Method+" is not allowed; allowed are "+strings.Join(methods, ", "))
	return false
}

// hop checks the output of a child relay: only for requested nodes, and in order.
type hop struct {
	relay string
	open  map[string]bool // nodes without an end: whether they have started
	to    *labelled
}

// labelledBranch forwards a remote run to a child relay in the extended dialect. Nodes without an end record get one
// with the reason.
func (s *Server) labelledBranch(ctx context.Context, known *state, relay string, b branch, run *remoteRun, to sink) {
	h := &hop{relay, map[string]bool{}, to.(*labelled)}
	for _, id := range b.ids {
		h.open[id] = false
	}
	fault := "it did not report the node"
	for _, part := range b.parts() {
		if err := s.askBranch(ctx, known, relay, part, run, h); err != nil {
			fault = err.Error()
			s.log.Warn("remote run: the branch failed", "relay", relay, "error", err)
			break
		}
	}
	if run.async && !run.keep {
		return // its answer is empty
	}
	for _, id := range b.ids {
		begun, open := h.open[id]
		if open && !begun {
			to.start(id)
		}
		if open {
			to.end(id, ending{fault: "relay " + relay + ": " + fault})
		}
	}
}

// parts returns the lists of nodes for one request each; nil is all nodes.
func (b branch) parts() (parts [][]string) {
	if b.all {
		return [][]string{nil}
	}
	for rest := b.ids; len(rest) > 0; {
		count, size := 0, 0
		for count < len(rest) && (count == 0 || int64(size+len(rest[count])) < limits.RunQuery) {
			size += len(rest[count]) + len("%2C")
			count++
		}
		parts, rest = append(parts, rest[:count]), rest[count:]
	}
	return parts
}

func (s *Server) askBranch(ctx context.Context, known *state, relay string, ids []string, run *remoteRun, h *hop) error {
	client, err := known.client(s.pinning(), known.certificates[relay], *known.own)
	if err != nil {
		return err
	}
	path := "remote-run/nodes"
	if ids == nil {
		path = "remote-run/all"
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.peerURL(known.nodes[relay].Hostname, path, run.query(ids)), nil)
	if err != nil {
		return err
	}
	return s.ask(client, request, run, limits.LabelledLine, func(lines []byte) bool {
		var good bytes.Buffer
		for line := range bytes.Lines(lines) {
			good.Write(h.check(line))
		}
		if good.Len() == 0 {
			return ctx.Err() == nil
		}
		return h.to.emit(good.Bytes())
	})
}

// check returns a line to forward, or nothing if the relay may not send it.
func (h *hop) check(line []byte) []byte {
	if line[0] != '{' {
		node, _, labelled := bytes.Cut(line, []byte(": "))
		if begun := h.open[string(node)]; !labelled || !begun {
			return nil
		}
		return line
	}
	line = bytes.ToValidUTF8(line, []byte("\uFFFD"))
	node, event, valid := parseRecord(line)
	begun, open := h.open[node]
	switch {
	case !valid, !open, event == "start" && begun, event == "end" && !begun:
		return nil
	case event == "start":
		h.open[node] = true
	case event == "end", event == "unknown":
		delete(h.open, node)
	default:
		return nil
	}
	return line
}

// parseRecord returns the node and the event of a record. It refuses a record that another parser might understand
// differently: with one of these fields twice, or in another case.
func parseRecord(line []byte) (node, event string, valid bool) {
	if !json.Valid(line) {
		return "", "", false
	}
	decoder := json.NewDecoder(bytes.NewReader(line))
	_, _ = decoder.Token() // the brace
	missing := map[string]*string{"node": &node, "event": &event}
	for decoder.More() {
		token, _ := decoder.Token()
		name, _ := token.(string)
		var into any = new(json.RawMessage)
		switch field, first := missing[name]; {
		case first:
			into = field
			delete(missing, name)
		case strings.EqualFold(name, "node"), strings.EqualFold(name, "event"):
			return "", "", false
		}
		if err := decoder.Decode(into); err != nil {
			return "", "", false
		}
	}
	return node, event, len(missing) == 0
}
