package rudder

import (
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	maxForm      = 1 << 20
	maxCondition = 1024
	runWait      = time.Minute      // for other remote runs to end
	bodySilence  = 60 * time.Second // of a client that sends or reads
)

var conditionRule = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9_]*$`)

// remoteRun is one request.
type remoteRun struct {
	all, async, keep bool
	nodes            []string
	conditions       []string
	came             http.Header
}

// rejection is what is wrong with a request that has a route: it is answered 400 with this text.
type rejection string

func (r rejection) Error() string { return string(r) }

// parseRun reads the form for `all`, `nodes` or `nodes/<id>`.
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
		if len(condition) > maxCondition {
			return nil, rejection("invalid condition: more than the maximum of " + strconv.Itoa(maxCondition) + " characters")
		}
		if !conditionRule.MatchString(condition) {
			return nil, rejection("invalid condition: " + condition + ", should match " + conditionRule.String())
		}
	}
	return conditions, nil
}

// form is the request as the next relay gets it, for nodes of its branch.
func (r *remoteRun) form(ids []string) url.Values {
	form := url.Values{"asynchronous": {strconv.FormatBool(r.async)}, "keep_output": {strconv.FormatBool(r.keep)}}
	if len(r.conditions) > 0 {
		form.Set("classes", strings.Join(r.conditions, ","))
	}
	if !r.all {
		form.Set("nodes", strings.Join(ids, ","))
	}
	return form
}

// serveRemoteRun answers POST remote-run/<target>. `target` is all, nodes or nodes/<id>.
func (s *Server) serveRemoteRun(w http.ResponseWriter, r *http.Request, target string) {
	if !s.config.RemoteRun {
		s.log.Warn("remote run is switched off (rudder.remote_run)", "remote", r.RemoteAddr)
	}
	if r.Method != http.MethodPost || !s.config.RemoteRun {
		notFound(w)
		return
	}
	if !bounded(w, r, maxForm) {
		return
	}
	form, ok := readForm(w, r)
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

// readForm takes a form; what is none is answered.
func readForm(w http.ResponseWriter, r *http.Request) (url.Values, bool) {
	if given := r.Header.Get("Content-Type"); given != "" {
		if kind, _, err := mime.ParseMediaType(given); err != nil || kind != "application/x-www-form-urlencoded" {
			notFound(w)
			return nil, false
		}
	}
	text, err := io.ReadAll(newPatient(w, r))
	if err != nil {
		answer(w, http.StatusInternalServerError, "INTERNAL SERVER ERROR")
		return nil, false
	}
	form, err := url.ParseQuery(string(text))
	if err != nil {
		notFound(w)
		return nil, false
	}
	return form, true
}

// start waits for its turn and runs; the answer is 200 whatever comes of it.
func (s *Server) start(w http.ResponseWriter, r *http.Request, run *remoteRun) {
	ctx, cancel := context.WithTimeout(r.Context(), runWait)
	defer cancel()
	select {
	case s.runs <- struct{}{}:
	case <-ctx.Done():
		answer(w, http.StatusServiceUnavailable, "too many remote runs at a time (rudder.remote_runs): try again later")
		return
	case <-s.living.Done():
	}
	if s.living.Err() != nil {
		answer(w, http.StatusServiceUnavailable, "the gateway stops: try again later")
		return
	}
	work, end := context.WithTimeout(s.living, s.config.RemoteRunTime)
	s.working.Add(1)
	done := func() {
		end()
		<-s.runs
		s.working.Done()
	}
	w.Header()["Content-Type"] = nil
	if run.async && !run.keep {
		w.WriteHeader(http.StatusOK)
		go func() {
			defer done()
			s.execute(work, run, func([]byte) bool { return true }, func([]byte) bool { return true })
		}()
		return
	}
	defer done()
	defer context.AfterFunc(r.Context(), end)() // a client that goes away ends what it started
	if !run.keep {
		s.execute(work, run, func([]byte) bool { return true }, func([]byte) bool { return true })
		w.WriteHeader(http.StatusOK)
		return
	}
	s.stream(w, work, end, run)
}

// stream sends the output as it comes: all sources at once for an asynchronous run, else what nodes of this
// relay say before what comes from below.
func (s *Server) stream(w http.ResponseWriter, work context.Context, end context.CancelFunc, run *remoteRun) {
	first, rest := make(chan []byte, linesAhead), make(chan []byte, linesAhead)
	into := func(queue chan []byte) func([]byte) bool {
		return func(lines []byte) bool {
			select {
			case queue <- lines:
				return true
			case <-work.Done():
				return false
			}
		}
	}
	queues := []chan []byte{first, rest}
	local, below := into(first), into(rest)
	if run.async {
		queues, local = queues[1:], below
	}
	complete := make(chan bool, 1)
	go func() {
		defer close(rest)
		complete <- s.executeInOrder(work, run, local, below, func() { close(first) })
	}()
	client := http.NewResponseController(w)
	w.WriteHeader(http.StatusOK)
	_ = client.Flush()
	for _, queue := range queues {
		for lines := range queue {
			_ = client.SetWriteDeadline(time.Now().Add(bodySilence))
			if _, err := w.Write(lines); err != nil || client.Flush() != nil {
				end()
			}
		}
	}
	if !<-complete {
		panic(http.ErrAbortHandler) // the answer is cut off, so that it does not look whole
	}
}

// execute runs here and below at once, and waits for all.
func (s *Server) execute(ctx context.Context, run *remoteRun, local, below func([]byte) bool) bool {
	return s.executeInOrder(ctx, run, local, below, func() {})
}

// executeInOrder tells when what runs here is over. A branch that fails contributes nothing; the result is false
// only if the command cannot be started here.
func (s *Server) executeInOrder(ctx context.Context, run *remoteRun, local, below func([]byte) bool, over func()) bool {
	known := s.state.Load()
	here, branches, lost := known.split(run.nodes)
	if run.all {
		here = known.children()
		for _, relay := range known.relays() {
			branches[relay] = nil
		}
	}
	if len(lost) > 0 {
		s.log.Info("remote run: nodes that are not below this relay are left out", "nodes", strings.Join(lost, ","))
	}
	var working sync.WaitGroup
	for relay, ids := range branches {
		working.Go(func() {
			if err := s.branch(ctx, known, relay, ids, run, below); err != nil {
				s.log.Warn("remote run: a branch contributes nothing more", "relay", relay, "error", err)
			}
		})
	}
	err := trigger(ctx, s.config.RemoteRunCommand, run.conditions, known.hostnames(here), local)
	if err != nil {
		s.log.Warn("remote run: the command failed", "error", err)
	}
	over()
	working.Wait()
	return !errors.Is(err, errSpawn)
}
