package e2e

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	musterv1 "muster.example/proto/gen/go/muster/v1"
	"muster.example/testing/fleet"
)

// curl calls the run's listener with a credential and returns the status code and the body.
func curl(t *testing.T, credential *fleet.Credential, arguments ...string) (code, body string) {
	t.Helper()
	folder := t.TempDir()
	for name, text := range map[string]string{"ca": credential.CA, "cert": credential.Certificate, "key": credential.Key} {
		check(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600))
	}
	command := exec.Command("curl", append([]string{"--silent", "--show-error", "--max-time", "60",
		"--cacert", filepath.Join(folder, "ca"), "--cert", filepath.Join(folder, "cert"), "--key", filepath.Join(folder, "key"),
		"--output", filepath.Join(folder, "body"), "--write-out", "%{http_code}"}, arguments...)...)
	var stderr strings.Builder
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		return "", fmt.Sprintf("%v: %s", err, stderr.String())
	}
	text, _ := os.ReadFile(filepath.Join(folder, "body"))
	return string(out), string(text)
}

// All ways in which an old client may use HTTP deliver.
func TestCurlDeliversAsLegacyClient(t *testing.T) {
	t.Parallel()
	f := up(t)
	ways := map[string][]string{
		"http11":  {"--http1.1"},
		"chunked": {"--http1.1", "-H", "Transfer-Encoding: chunked"},
		"noalpn":  {"--no-alpn", "-H", "Transfer-Encoding: chunked"},
		"tls12":   {"--tls-max", "1.2", "--no-alpn"},
		"notype":  {"--no-alpn", "-H", "Content-Type;"},
		"default": nil,
	}
	var nodes []string
	for way := range ways {
		nodes = append(nodes, way)
	}
	id := run(t, f, []string{sidecarPlugin("logs", "DaemonSet")}, nodes...)
	file := must(f.WriteFile("r.json", `{"some":"result"}`))(t)
	for way, flags := range ways {
		t.Run(way, func(t *testing.T) {
			credential := must(f.Export(id, "logs", way))(t)
			url := credential.AggregatorURL + "/api/v1/results/by-node/" + way + "/logs"
			code, body := curl(t, credential, append(flags, "-T", file,
				"-H", "Content-Disposition: attachment;filename=r.json", url)...)
			if code != "200" || body != "" {
				t.Errorf("answered %s %q, want 200 and nothing", code, body)
			}
		})
	}
	operator(t, f).awaitState(t, id, musterv1.RunState_RUN_STATE_COMPLETE)
	files := archive(t, f, id)
	for way := range ways {
		wantFile(t, files, "plugins/logs/results/"+way+"/r.json", `{"some":"result"}`)
	}
}

func TestListenerCodesMatchSonobuoy(t *testing.T) {
	t.Parallel()
	f := up(t)
	id := run(t, f, []string{sidecarPlugin("logs", "DaemonSet"), sidecarPlugin("e2e", "Job")}, "n1", "n2")
	credential := must(f.Export(id, "logs", "n1"))(t)
	one, other := must(f.WriteFile("one", "one"))(t), must(f.WriteFile("other", "other"))(t)
	results, progress := credential.AggregatorURL+"/api/v1/results/", credential.AggregatorURL+"/api/v1/progress/"
	for _, c := range []struct {
		name, want string
		arguments  []string
	}{
		{"a result", "200", []string{"-T", one, results + "by-node/n1/logs"}},
		{"the same again", "200", []string{"-T", one, results + "by-node/n1/logs"}},
		{"the seed's spelling", "200", []string{"-T", one, results + "by_node/n1/logs"}},
		{"different content", "409", []string{"-T", other, results + "by-node/n1/logs"}},
		{"another node", "403", []string{"-T", one, results + "by-node/n2/logs"}},
		{"another plugin", "403", []string{"-T", one, results + "global/e2e"}},
		{"an unplanned node", "403", []string{"-T", one, results + "by-node/n9/logs"}},
		{"an unplanned plugin", "403", []string{"-T", one, results + "by-node/n1/nothing"}},
		{"an unknown path", "404", []string{"-T", one, credential.AggregatorURL + "/api/v1/nothing"}},
		{"the seed's typing error", "404", []string{"-T", one, credential.AggregatorURL + "/api/v1/resutlts/global/e2e"}},
		{"a slash too many", "404", []string{"-T", one, results + "by-node/n1/logs/"}},
		{"a path with dot segments", "404", []string{"--path-as-is", "-T", one, results + "by-node/n1/../../x"}},
		{"a slash in a name", "404", []string{"-T", one, results + "by-node/n1%2Fx/logs"}},
		{"another method", "405", []string{"-X", "POST", "--data", "x", results + "by-node/n1/logs"}},
		{"progress", "200", []string{"-X", "POST", "--data", `{"msg":"m","total":2,"completed":1}`, progress + "by-node/n1/logs"}},
		{"progress that is not JSON", "400", []string{"-X", "POST", "--data", "x", progress + "by-node/n1/logs"}},
		{"progress without a body", "400", []string{"-X", "POST", progress + "by-node/n1/logs"}},
		{"another's progress", "403", []string{"-X", "POST", "--data", `{}`, progress + "by-node/n2/logs"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, body := curl(t, credential, append([]string{"--no-alpn"}, c.arguments...)...)
			if code != c.want {
				t.Errorf("answered %s %q, want %s", code, body, c.want)
			}
			if code == "403" && !strings.Contains(body, "(NOT_YOURS)") && !strings.Contains(body, "(PAIR_NOT_PLANNED)") {
				t.Errorf("answered %q, want the reason of the refusal", body)
			}
		})
	}
	t.Run("plain HTTP", func(t *testing.T) {
		code, body := curl(t, credential, "-T", one, strings.Replace(results, "https:", "http:", 1)+"by-node/n1/logs")
		if code != "400" || !strings.Contains(strings.ToLower(body), "https") {
			t.Errorf("answered %s %q, want 400 and a line with help", code, body)
		}
	})
	t.Run("after a cancellation", func(t *testing.T) {
		n2 := must(f.Export(id, "logs", "n2"))(t)
		must(f.Muster("cancel", id))(t)
		if code, body := curl(t, n2, "-T", one, results+"by-node/n2/logs"); code != "410" {
			t.Errorf("answered %s %q, want 410", code, body)
		}
	})
}

// putShort announces the whole body, sends half of it, and closes the connection.
func putShort(t *testing.T, client *http.Client, url, whole string) error {
	t.Helper()
	half, fail := io.Pipe()
	go func() {
		_, _ = io.WriteString(fail, whole[:len(whole)/2])
		fail.CloseWithError(errors.New("cut"))
	}()
	request := must(http.NewRequest(http.MethodPut, url, half))(t)
	request.ContentLength = int64(len(whole))
	response, err := client.Do(request)
	if err == nil {
		response.Body.Close()
		t.Errorf("half a body was answered %d", response.StatusCode)
	}
	return err
}
