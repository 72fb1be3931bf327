package legacy

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"

	"muster.example/gateway/limits"
	"muster.example/services/client/go"
)

// update is a progress report of a plugin; unknown members are ignored.
type update struct {
	Message         string   `json:"msg"`
	Total           int64    `json:"total"`
	Completed       int64    `json:"completed"`
	Failures        []string `json:"failures"`
	Errors          []string `json:"errors"`
	AppendTotals    bool     `json:"appendtotals"`
	AppendCompleted int64    `json:"appendcompleted"`
	AppendFailing   []string `json:"appendfailing"`
}

// progress forwards a report, and answers within limits.ProgressTime.
func (h *handler) progress(ctx context.Context, w http.ResponseWriter, r *http.Request, stream *body, route *Route,
	key muster.Key) {
	content, err := io.ReadAll(io.LimitReader(stream, limits.ProgressBody+1))
	if err == nil && int64(len(content)) > limits.ProgressBody {
		h.refused(r, route.Path, w, stream, http.StatusRequestEntityTooLarge, "a progress report is limited to 1 MiB")
		return
	}
	var report *update
	if err != nil || json.Unmarshal(content, &report) != nil || report == nil {
		h.answered(r, route.Path, w, http.StatusBadRequest, "")
		return
	}
	ctx, cancel := context.WithTimeout(ctx, limits.ProgressTime)
	defer cancel()
	err = h.deliver.ReportProgress(ctx, key, muster.Progress{
		Message: report.Message, Total: report.Total, Completed: report.Completed,
		Failures: report.Failures, Errors: report.Errors,
		AppendTotals: report.AppendTotals, AppendCompleted: report.AppendCompleted, AppendFailing: report.AppendFailing,
	})
	if err != nil {
		code := answerFailure(w, retryIfUnknown(err))
		h.count(route.Path, code)
		h.log.Debug("progress not accepted", "plugin", key.Plugin, "node", key.Node, "code", code, "error", err)
		return
	}
	h.answered(r, route.Path, w, http.StatusOK, "")
}

// sniffError recognises what an old worker sends instead of a result that it cannot open: a JSON object with the single
// member "error", without a file name. It is delivered as an error; a genuine result may still replace it.
func sniffError(stream *body, delivery *muster.Delivery) io.Reader {
	content, err := io.ReadAll(io.LimitReader(stream, limits.ErrorReport+1))
	if err != nil {
		return io.MultiReader(bytes.NewReader(content), failing{err})
	}
	var members map[string]string
	if json.Unmarshal(content, &members) == nil && len(members) == 1 && members["error"] != "" {
		delivery.IsError, delivery.MediaType = true, "text/plain; charset=utf-8"
		return bytes.NewReader([]byte(members["error"]))
	}
	return bytes.NewReader(content)
}

// failing is a reader that only returns an error.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }
