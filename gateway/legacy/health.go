package legacy

import (
	"context"
	"encoding/json"
	"net/http"

	"muster.example/gateway/limits"
	musterv1 "muster.example/proto/gen/go/muster/v1"
	"muster.example/services/client/go"
	"muster.example/services/client/go/reasons"
)

// health accepts a heartbeat of the original design: a periodic GET.
func (h *handler) health(ctx context.Context, w http.ResponseWriter, r *http.Request, route *Route, key muster.Key) {
	ctx, cancel := context.WithTimeout(ctx, limits.ProgressTime)
	defer cancel()
	taken, err := h.heartbeats.SendHeartbeat(ctx, &musterv1.SendHeartbeatRequest{
		Key: &musterv1.ResultKey{Run: key.Run, Plugin: key.Plugin, Node: key.Node},
	})
	if err != nil {
		h.count(route.Path, answerFailure(w, retryIfUnknown(muster.AsError(err))))
		return
	}
	h.count(route.Path, http.StatusOK)
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(struct {
		Seconds int64 `json:"interval_seconds"`
	}{max(1, taken.Interval.GetSeconds())})
}

// retryIfUnknown makes an error retryable if the status service does not know the run yet.
func retryIfUnknown(err error) error {
	if answer := muster.AsError(err); answer.Reason == reasons.RunNotFound {
		answer.Code, answer.Reason = "UNAVAILABLE", reasons.StatusNotReady
		return answer
	}
	return err
}
