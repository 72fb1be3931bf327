package rest

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"muster.example/gateway/fleet"
	"muster.example/gateway/inspect"
	"muster.example/gateway/limits"
)

func TestWatchesOfAllIdentitiesAreBounded(t *testing.T) {
	s := NewWatches(inspect.NewMetrics())
	begin := func(user int) (*httptest.ResponseRecorder, func(), bool) {
		w := httptest.NewRecorder()
		ctx := fleet.WithIdentity(t.Context(), fmt.Sprintf("spiffe://f/user/u%d", user))
		_, end, ok := s.Begin(w, httptest.NewRequest(http.MethodGet, "/", nil).WithContext(ctx))
		return w, end, ok
	}
	var last func()
	for i := range limits.Watches {
		_, end, ok := begin(i / limits.WatchesOfIdentity)
		if !ok {
			t.Fatalf("watch %d is refused", i)
		}
		last = end
	}
	other := limits.Watches
	if w, _, ok := begin(other); ok || w.Code != http.StatusTooManyRequests {
		t.Errorf("another client: %d", w.Code)
	}
	last()
	if _, _, ok := begin(other); !ok {
		t.Error("refused after the end of a watch")
	}
}
