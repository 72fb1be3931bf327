package e2e

import (
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	musterv1 "muster.example/proto/gen/go/muster/v1"
	"muster.example/testing/fleet"
)

// connectionLease is longer than the time after which a server closes the connection of a peer that acknowledges nothing
// (45 s, services/common/rpc/server.cc).
const connectionLease = 50 * time.Second

// halfPut is a legacy delivery whose client has sent the first half of the content.
type halfPut struct {
	rest  func() // sends the other half
	ended chan error
}

// putHalf begins a delivery.
func putHalf(t *testing.T, credential *fleet.Credential, content string) *halfPut {
	t.Helper()
	body, writer := io.Pipe()
	client := must(credential.HTTP())(t)
	request := must(http.NewRequest(http.MethodPut,
		credential.AggregatorURL+"/api/v1/results/by-node/"+credential.Node+"/"+credential.Plugin, body))(t)
	put := &halfPut{ended: make(chan error, 1)}
	go func() {
		response, err := client.Do(request)
		if err == nil {
			text, _ := io.ReadAll(io.LimitReader(response.Body, 1000))
			response.Body.Close()
			if response.StatusCode != http.StatusOK {
				err = fmt.Errorf("status %d: %s", response.StatusCode, text)
			}
		}
		_ = body.CloseWithError(io.ErrClosedPipe)
		put.ended <- err
	}()
	half := len(content) / 2
	must(io.WriteString(writer, content[:half]))(t)
	put.rest = func() {
		_, _ = io.WriteString(writer, content[half:]) // the request may have ended
		_ = writer.Close()
	}
	return put
}

// The gateway is suspended in the middle of deliveries until the aggregator has closed its connection, and another sender
// delivers one of the results meanwhile: the gateway does not replace it, and its other delivery is stored once.
func TestSuspendedGatewayReplacesNoResult(t *testing.T) {
	t.Parallel()
	f := up(t)
	id := run(t, f, []string{sidecarPlugin("logs", "DaemonSet")}, "alone", "raced")
	alone, raced := must(f.Export(id, "logs", "alone"))(t), must(f.Export(id, "logs", "raced"))(t)
	content := strings.Repeat("0123456789abcdef", 1<<19)
	first, second := putHalf(t, alone, content), putHalf(t, raced, content)
	staged := filepath.Join(f.Home, "aggregator", "blobs", "staged")
	until(t, "both uploads have begun", func() bool { return len(filesBelow(staged)) >= 2 })

	gateway := must(f.Process(fleet.Gateway))(t)
	check(t, gateway.Stop())
	began := time.Now()
	check(t, submit(t, raced, id, "logs", "raced", "of another sender"))
	check(t, fleet.Until(2*connectionLease, "the suspension is over", func() bool { return time.Since(began) > connectionLease }))
	check(t, gateway.Continue())
	first.rest()
	second.rest()

	if err := <-second.ended; err == nil || !refusedForGood(err) {
		t.Errorf("the delivery of another content than the committed one ended with %v", err)
	}
	if err := <-first.ended; err != nil {
		t.Logf("the suspended delivery ended with %v", err)
		again := putHalf(t, alone, content) // as every client does
		again.rest()
		check(t, <-again.ended)
	}
	a := operator(t, f)
	a.awaitState(t, id, musterv1.RunState_RUN_STATE_COMPLETE)
	for node, want := range map[string]string{"alone": content, "raced": "of another sender"} {
		got, digest := a.result(t, id, "logs", node), sha256.Sum256([]byte(want))
		if got.Generation != 1 || got.Size != int64(len(want)) || len(got.Sha256) > 0 && [32]byte(got.Sha256) != digest {
			t.Errorf("the result of %s is %v", node, got)
		}
	}
	wantSoundStore(t, f, 3)
	if after := must(f.Process(fleet.Gateway))(t); after.PID != gateway.PID {
		t.Errorf("%v was restarted as %v", gateway, after)
	}
}

// The jobs service is suspended in the middle of submissions, and while it follows a deployment that ends meanwhile: each
// deployment runs once, with all of its output.
func TestSuspendedJobsServiceRunsEachDeploymentOnce(t *testing.T) {
	t.Parallel()
	d := newDeploying(t)
	followed := strings.TrimSpace(must(d.Muster("deploy", "hi", "--node", "n1", "--set", "name=Ada", "--set", "seconds=4"))(t))
	until(t, "the deployment prints", func() bool {
		out, _ := d.Muster("deployment", "logs", followed)
		return strings.Contains(out, "n1: line 3\n")
	})
	const submissions = 6
	jobs := must(d.Process(fleet.Jobs))(t)
	var all sync.WaitGroup
	accepted := make(chan string, submissions)
	for range submissions {
		all.Go(func() {
			if out, err := d.Muster("deploy", "hi", "--node", "n1", "--set", "name=Ada"); err == nil {
				accepted <- strings.TrimSpace(out)
			} else {
				t.Logf("a submission ended with %v", err)
			}
		})
	}
	until(t, "a submission is accepted", func() bool { return len(accepted) > 0 })
	suspendFor(t, jobs, connectionLease)
	all.Wait()
	close(accepted)
	ids := []string{followed}
	for id := range accepted {
		ids = append(ids, id)
	}
	t.Logf("%d submissions were accepted", len(ids)-1)

	var listed []shownDeployment
	check(t, fleet.Until(2*time.Minute, "all deployments have succeeded", func() bool {
		listed = nil
		check(t, d.JSON(&listed, "deployment", "list"))
		for _, deployment := range listed {
			if deployment.State != "succeeded" {
				return false
			}
		}
		return true
	}))
	// A submission whose answer was lost may be stored.
	if len(listed) < len(ids) || len(listed) > 1+submissions {
		t.Errorf("%d deployments are listed, and %d were accepted", len(listed), len(ids))
	}
	var jobsOfRelay []map[string]any
	check(t, d.JSON(&jobsOfRelay, "job", "list"))
	if len(jobsOfRelay) != len(listed) {
		t.Errorf("%d jobs belong to %d deployments", len(jobsOfRelay), len(listed))
	}
	for _, deployment := range listed {
		out := must(d.Muster("deployment", "logs", deployment.Deployment))(t)
		lines := 0
		if deployment.Deployment == followed {
			lines = 80
		}
		if strings.Count(out, "deploy for Ada") != 1 || strings.Count(out, "n1: line ") != lines {
			t.Errorf("deployment %s printed %s", deployment.Deployment, out)
		}
	}
	for _, id := range ids {
		if shown := d.show(t, id); len(shown.Nodes) != 1 || shown.Nodes[0].Outputs["text"] != "hello Ada" {
			t.Errorf("deployment %s has %+v", id, shown)
		}
	}
	if after := must(d.Process(fleet.Jobs))(t); after.PID != jobs.PID {
		t.Errorf("%v was restarted as %v", jobs, after)
	}
	noContainers(t, d.docker)
}
