// Package rest serves the API as JSON over HTTPS, and the bytes of results and archives.
package rest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"

	"muster.example/services/client/go"
)

// statuses maps error classes to HTTP codes. FAILED_PRECONDITION is 409, not 400: the request is valid, but conflicts
// with the state of its object.
var statuses = map[string]int{
	"CANCELLED": 499, "INVALID_ARGUMENT": http.StatusBadRequest, "DEADLINE_EXCEEDED": http.StatusGatewayTimeout,
	"NOT_FOUND": http.StatusNotFound, "ALREADY_EXISTS": http.StatusConflict, "PERMISSION_DENIED": http.StatusForbidden,
	"RESOURCE_EXHAUSTED": http.StatusTooManyRequests, "FAILED_PRECONDITION": http.StatusConflict,
	"ABORTED": http.StatusConflict, "OUT_OF_RANGE": http.StatusRequestedRangeNotSatisfiable,
	"UNIMPLEMENTED": http.StatusNotImplemented, "UNAVAILABLE": http.StatusServiceUnavailable,
	"DATA_LOSS": http.StatusInternalServerError, "UNAUTHENTICATED": http.StatusUnauthorized,
}

// Problem is the body of every error.
type Problem struct {
	Message  string `json:"message"`
	Reason   string `json:"reason"`
	NextStep string `json:"next_step"`
}

// AnswerError answers with an error of a service, with the HTTP code of its class.
func AnswerError(w http.ResponseWriter, err error) {
	answer := muster.AsError(err)
	code, ok := statuses[answer.Code]
	if !ok {
		code = http.StatusInternalServerError
	}
	if answer.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int((answer.RetryAfter+time.Second-1)/time.Second)))
	}
	reason := answer.Reason
	if reason == "" {
		reason = answer.Code
	}
	AnswerProblem(w, code, Problem{answer.Message, reason, answer.NextStep})
}

// AnswerProblem answers with an error.
func AnswerProblem(w http.ResponseWriter, code int, p Problem) {
	for _, name := range []string{"ETag", "Digest", "Repr-Digest", "Content-Length", "Content-Disposition", "Accept-Ranges"} {
		w.Header().Del(name)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(p)
}

func grpcError(_ context.Context, _ *runtime.ServeMux, _ runtime.Marshaler, w http.ResponseWriter, _ *http.Request, err error) {
	AnswerError(w, err)
}

func routingError(_ context.Context, _ *runtime.ServeMux, _ runtime.Marshaler, w http.ResponseWriter, r *http.Request, code int) {
	const next = "GET /api/v1/openapi.json lists all paths."
	switch code {
	case http.StatusNotFound:
		AnswerProblem(w, code, Problem{fmt.Sprintf("path %s not found", r.URL.Path), "PATH_NOT_FOUND", next})
	case http.StatusMethodNotAllowed:
		AnswerProblem(w, code, Problem{fmt.Sprintf("%s does not support %s", r.URL.Path, r.Method), "METHOD_NOT_ALLOWED", next})
	default:
		AnswerProblem(w, code, Problem{"the request is malformed", "BAD_REQUEST", next})
	}
}
