package app_test

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"muster.example/services/client/go"
	"muster.example/services/client/go/mustertest"
)

// oldConfig returns the client configuration of an old sidecar: only the listener's address and the run's CA.
func oldConfig(t *testing.T, w *testGateway, plugin, node string) *muster.Config {
	t.Helper()
	chain, key := mustertest.PEM(w.leaf(plugin, node))
	for name, value := range map[string]string{
		"AGGREGATOR_URL": "https://" + w.address() + "/api/v1/results/by-node", "RESULT_TYPE": plugin, "NODE_NAME": node,
		"CA_CERT": w.runA.SelfSigned.PEM(), "CLIENT_CERT": chain, "CLIENT_KEY": key,
	} {
		t.Setenv(name, value)
	}
	config, err := muster.LoadConfig("")
	if err != nil {
		t.Fatal(err)
	}
	return config
}

func TestClientLibraryDeliversToLegacyListener(t *testing.T) {
	w := start(t)
	for _, node := range []string{"n1", "global"} {
		client, err := muster.New(oldConfig(t, w, "logs", node))
		if err != nil {
			t.Fatal(err)
		}
		content := strings.Repeat("x", 3<<20)
		path := write(t, "a b.txt", content)
		for range 2 {
			if result, err := client.SubmitFile(t.Context(), path, muster.Delivery{}); err != nil || result.Size != 3<<20 {
				t.Errorf("%s: %v", node, err)
			}
		}
		got := w.aggregator.Get(key("logs", node))
		if string(got.Data) != content || got.Description.FileName != "a b.txt" || got.Description.MediaType != "text/plain; charset=utf-8" {
			t.Errorf("%s: stored %v", node, got.Description)
		}
		var answer *muster.Error
		if _, err = client.Submit(t.Context(), &muster.Delivery{Body: bytes.NewBufferString("other")}); !errors.As(err, &answer) || answer.Reason != "RESULT_CONFLICT" {
			t.Errorf("%s: %v", node, err)
		}
		if err := client.ReportProgress(t.Context(), muster.Key{}, muster.Progress{Message: "m", AppendCompleted: 2}); err != nil {
			t.Error(err)
		}
		client.Close()
	}
	if r := w.aggregator.Reports; len(r) != 2 || r[0].AppendCompleted != 2 || r[1].Key.Node != "global" {
		t.Errorf("progress %v", r)
	}
	client, err := muster.New(oldConfig(t, w, "e2e", "n1"))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if _, err := client.SubmitError(t.Context(), muster.Key{}, "no luck"); err != nil {
		t.Error(err)
	}
	if got := w.aggregator.Get(key("e2e", "n1")); !got.Description.IsError || string(got.Data) != "no luck" {
		t.Errorf("%+v", got)
	}
	w.aggregator.Refuse(runA, codes.FailedPrecondition, "RUN_CANCELLED")
	var answer *muster.Error
	if _, err := client.SubmitFile(t.Context(), os.Args[0], muster.Delivery{}); !errors.As(err, &answer) || answer.Reason != "RUN_SEALED" {
		t.Errorf("%v", err)
	}
}
