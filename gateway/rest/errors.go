// Package rest serves the API as JSON over HTTPS, and the bytes of results and archives.
package rest

import (
	"context"
	"encoding/json"
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
	Code     string `json:"-"` // the class, such as NOT_FOUND
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
	AnswerProblem(w, code, Problem{Message: answer.Message, Reason: reason, NextStep: answer.NextStep})
}

// optional is a value with what belongs before and after it, or nothing.
func optional(before, value, after string) string {
	if value == "" {
		return ""
	}
	return before + value + after
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
	switch code {
	case http.StatusNotFound:
		AnswerProblem(w, code, PathNotFound(r.URL.Path, "List the paths: GET /api/v1/openapi.json."))
	case http.StatusMethodNotAllowed:
		AnswerProblem(w, code, MethodNotAllowed(r.URL.Path, r.Method))
	default:
		AnswerProblem(w, code, BadRequest())
	}
}
