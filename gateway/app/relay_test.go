package app_test

import (
	"context"
	"encoding/base64"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	musterv1 "muster.example/proto/gen/go/muster/v1"
)

const jobID = "0123456789abcdef0123456789abcdef"

// submission returns the body of a request to run a job on a node.
func submission(t *testing.T, node string) string {
	t.Helper()
	command, err := proto.Marshal(&musterv1.Command{Job: jobID, Action: "exec", Argv: []string{"id"}, TimeLimit: durationpb.New(1e11)})
	if err != nil {
		t.Fatal(err)
	}
	return `{"command":{"command":"` + base64.StdEncoding.EncodeToString(command) + `"},"nodes":["` + node + `"]}`
}

// printer prints a text and exits with 3, unless it is cancelled before `let` is closed.
func printer(text string, let <-chan struct{}) func(context.Context, *musterv1.Command, func(*musterv1.JobRecord)) *musterv1.JobRecord_Final {
	return func(ctx context.Context, _ *musterv1.Command, emit func(*musterv1.JobRecord)) *musterv1.JobRecord_Final {
		emit(&musterv1.JobRecord{Record: &musterv1.JobRecord_Output_{
			Output: &musterv1.JobRecord_Output{Stream: musterv1.JobStream_JOB_STREAM_STDOUT, Data: []byte(text)}}})
		select {
		case <-let:
		case <-ctx.Done():
			return &musterv1.JobRecord_Final{Outcome: musterv1.JobOutcome_JOB_OUTCOME_CANCELLED}
		}
		return &musterv1.JobRecord_Final{Outcome: musterv1.JobOutcome_JOB_OUTCOME_EXITED, ExitCode: 3}
	}
}

func TestRESTServesJobsAndAttachedNodes(t *testing.T) {
	w := start(t)
	let := make(chan struct{})
	w.relay.AddNode("n1", printer("hello\n", let))
	client := w.operator(alice)
	if a := call(t, client, "GET", w.url("/api/v1/attached?page_size=5"), nil); a.code != 200 || !strings.Contains(a.body, `"name":"n1"`) {
		t.Error(a)
	}
	if a := call(t, client, "POST", w.url("/api/v1/jobs"), strings.NewReader(submission(t, "n1"))); a.code != 200 || decode(t, a.body)["job"] != jobID {
		t.Fatal(a)
	}
	if a := call(t, client, "GET", w.url("/api/v1/jobs/"+jobID), nil); decode(t, a.body)["state"] != "JOB_STATE_RUNNING" {
		t.Error(a)
	}
	if a := call(t, client, "GET", w.url("/api/v1/jobs"), nil); !strings.Contains(a.body, jobID) {
		t.Error(a)
	}
	close(let)
	watched := call(t, client, "GET", w.url("/api/v1/jobs/"+jobID+":watch"), nil)
	if hello := base64.StdEncoding.EncodeToString([]byte("hello\n")); !strings.Contains(watched.body, hello) || !strings.Contains(watched.body, `"exitCode":3`) ||
		strings.Count(watched.body, "\n") != 3 {
		t.Error(watched)
	}
	if a := call(t, client, "GET", w.url("/api/v1/jobs/"+jobID+":watch?position=2"), nil); strings.Count(a.body, "\n") != 1 {
		t.Error(a)
	}
	if a := call(t, client, "GET", w.url("/api/v1/jobs/none"), nil); a.code != 404 || decode(t, a.body)["reason"] != "JOB_NOT_FOUND" {
		t.Error(a)
	}
	if callers := slices.Compact(w.relay.Callers()); !slices.Equal(callers, []string{"[" + alice + "]"}) {
		t.Error(callers)
	}
}

func TestRESTCancelsJob(t *testing.T) {
	w := start(t)
	w.relay.AddNode("n1", printer("", nil))
	client := w.operator(alice)
	call(t, client, "POST", w.url("/api/v1/jobs"), strings.NewReader(submission(t, "n1")))
	if a := call(t, client, "POST", w.url("/api/v1/jobs/"+jobID+":cancel"), nil); decode(t, a.body)["state"] != "JOB_STATE_CANCELLED" {
		t.Error(a)
	}
	if a := call(t, client, "GET", w.url("/api/v1/jobs/"+jobID+":watch"), nil); !strings.Contains(a.body, "JOB_OUTCOME_CANCELLED") {
		t.Error(a)
	}
}

func TestJobsWithoutRelayAreUnavailable(t *testing.T) {
	for reason, change := range map[string]func(*testGateway){
		"NO_RELAY":    func(w *testGateway) { w.config.RelayTargets = nil },
		"UNAVAILABLE": func(w *testGateway) { w.relay.Stop() },
	} {
		w := start(t, change)
		for _, path := range []string{"/api/v1/attached", "/api/v1/jobs", "/api/v1/jobs/" + jobID, "/api/v1/jobs/" + jobID + ":watch"} {
			if a := call(t, w.operator(alice), "GET", w.url(path), nil); a.code != 503 || !strings.Contains(a.body, `"`+reason+`"`) {
				t.Errorf("%s %s: %d %s", reason, path, a.code, a.body)
			}
		}
	}
}
