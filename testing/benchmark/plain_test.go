package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestPlainAggregatorStoresEachResultOnce(t *testing.T) {
	p := &plainAggregator{folder: t.TempDir(), received: map[string]bool{}}
	for i, want := range []int{http.StatusOK, http.StatusConflict} {
		request := httptest.NewRequest("PUT", "/api/v1/results/by-node/n1/load", strings.NewReader(strings.Repeat("x", i+1)))
		request.SetPathValue("node", "n1")
		request.SetPathValue("plugin", "load")
		answer := httptest.NewRecorder()
		p.put(answer, request)
		if answer.Code != want {
			t.Errorf("delivery %d: %d %s", i+1, answer.Code, answer.Body)
		}
	}
	if content, err := os.ReadFile(filepath.Join(p.folder, "load", "results", "n1", "result")); err != nil || string(content) != "x" {
		t.Errorf("%q is stored, %v", content, err)
	}
}
