package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// scanner is the example of a web product's back end, in its own folder.
type scanner struct {
	url    string
	folder string // its home and temporary folder
	stop   func()
}

func startScanner(t *testing.T, context string) *scanner {
	t.Helper()
	program := filepath.Join(t.TempDir(), "scanner")
	if out, err := exec.Command("go", "build", "-o", program, "muster.example/gateway/example/scanner").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	s := &scanner{folder: t.TempDir()}
	command := exec.Command(program, "--context", context, "--listen", "127.0.0.1:0")
	command.Dir = s.folder
	command.Env = []string{"HOME=" + s.folder, "TMPDIR=" + s.folder, "XDG_CACHE_HOME=" + s.folder}
	var problems bytes.Buffer
	command.Stderr = &problems
	out := must(command.StdoutPipe())(t)
	check(t, command.Start())
	s.stop = func() {
		_ = command.Process.Signal(os.Interrupt)
		if err := command.Wait(); err != nil {
			t.Errorf("scanner: %v: %s", err, problems.String())
		}
		s.stop = func() {}
	}
	t.Cleanup(func() { s.stop() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("the scanner does not serve: %v", err)
	}
	s.url = strings.TrimSpace(strings.TrimPrefix(line, "serving on "))
	return s
}

// ask sends a request with a session's cookie, if any.
func (s *scanner) ask(t *testing.T, method, path, body string, session *http.Cookie) (*http.Response, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), soon)
	defer cancel()
	request := must(http.NewRequestWithContext(ctx, method, s.url+path, strings.NewReader(body)))(t)
	if session != nil {
		request.AddCookie(session)
	}
	response := must(http.DefaultClient.Do(request))(t)
	defer response.Body.Close()
	return response, string(must(io.ReadAll(response.Body))(t))
}

type scanStatus struct {
	Status  string
	Run     string
	Percent float64 `json:"percent_complete"`
	Plugins []struct{ Name, Node, Status string }
}

func parseStatus(t *testing.T, text string) (status scanStatus) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &status); err != nil {
		t.Fatalf("%v in %q", err, text)
	}
	return status
}

// A product's back end creates a run by the API, shows it to its end by polling and by events, and keeps its
// credentials in its session only.
func TestProductStartsRunAndShowsItToItsEnd(t *testing.T) {
	t.Parallel()
	f := up(t)
	s := startScanner(t, filepath.Join(f.Home, "context.json"))
	if response, _ := s.ask(t, "GET", "/scans/status", "", nil); response.StatusCode != http.StatusUnauthorized {
		t.Errorf("without a session: %s", response.Status)
	}
	const script = `echo found > "$RESULTS_DIR/out.txt"; echo "$RESULTS_DIR/out.txt" > "$RESULTS_DIR/done"`
	wanted := must(json.Marshal(map[string][]string{"plugins": {execPlugin("scan", "DaemonSet", script)}, "nodes": {"n1", "n2"}}))(t)
	response, text := s.ask(t, "POST", "/scans", string(wanted), nil)
	var scan struct{ Run string }
	if err := json.Unmarshal([]byte(text), &scan); err != nil || response.StatusCode != http.StatusCreated || len(response.Cookies()) != 1 {
		t.Fatalf("%s: %q %v", response.Status, text, err)
	}
	session := response.Cookies()[0]
	if !session.HttpOnly || !session.Secure || session.SameSite != http.SameSiteStrictMode {
		t.Errorf("the session's cookie is %v", session)
	}
	until(t, "the run is planned", func() bool {
		response, text = s.ask(t, "GET", "/scans/status", "", session)
		return response.StatusCode == http.StatusOK
	})
	before := parseStatus(t, text)
	if before.Run != scan.Run || before.Status != "running" || before.Percent != 0 || len(before.Plugins) != 2 || before.Plugins[1].Node != "n2" {
		t.Errorf("before the delivery: %s", text)
	}
	last := make(chan []string)
	go func() { last <- s.events(session) }()
	for _, node := range []string{"n1", "n2"} {
		check(t, f.Agent(context.Background(), must(f.Export(scan.Run, "scan", node))(t)))
	}
	until(t, "polling shows the end", func() bool {
		_, text = s.ask(t, "GET", "/scans/status", "", session)
		return parseStatus(t, text).Status == "complete"
	})
	if after := parseStatus(t, text); after.Percent != 1 || after.Plugins[0].Status != "complete" {
		t.Errorf("after the delivery: %s", text)
	}
	events := <-last
	if len(events) < 3 || events[len(events)-1] != "{}" {
		t.Fatalf("the events are %q", events)
	}
	if end := parseStatus(t, events[len(events)-2]); end.Status != "complete" || end.Percent != 1 {
		t.Errorf("the last event: %q", events[len(events)-2])
	}
	s.wantNoKeyOnDisk(t)
	if response, _ := s.ask(t, "DELETE", "/scans", "", session); response.StatusCode != http.StatusNoContent {
		t.Errorf("the end of the session: %s", response.Status)
	}
	if response, _ := s.ask(t, "GET", "/scans/status", "", session); response.StatusCode != http.StatusUnauthorized {
		t.Errorf("after the session: %s", response.Status)
	}
	if _, text := s.ask(t, "POST", "/scans", `{"plugins": ["nothing"], "nodes": ["n1"]}`, nil); !strings.Contains(text, "nothing") {
		t.Errorf("an unknown plugin: %q", text)
	}
	s.stop()
	s.wantNoKeyOnDisk(t)
}

// events returns the data of all events to the stream's end.
func (s *scanner) events(session *http.Cookie) (all []string) {
	request, err := http.NewRequest("GET", s.url+"/scans/events", nil)
	if err != nil {
		return []string{err.Error()}
	}
	request.AddCookie(session)
	response, err := (&http.Client{Timeout: 3 * soon}).Do(request)
	if err != nil {
		return []string{err.Error()}
	}
	defer response.Body.Close()
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			all = append(all, data)
		}
	}
	return all
}

// wantNoKeyOnDisk searches everything that the scanner could have written: its home and its temporary folder.
func (s *scanner) wantNoKeyOnDisk(t *testing.T) {
	t.Helper()
	check(t, filepath.WalkDir(s.folder, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			t.Errorf("the scanner wrote %s", path)
		}
		return err
	}))
	for _, pattern := range []string{"*scan*", "*.pem", "*.key"} {
		for _, path := range must(filepath.Glob(filepath.Join(os.TempDir(), pattern)))(t) {
			content, err := os.ReadFile(path)
			if err == nil && bytes.Contains(content, []byte("PRIVATE KEY")) {
				t.Errorf("%s holds a private key", path)
			}
		}
	}
}
