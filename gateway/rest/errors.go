// Package rest serves the API as JSON over HTTPS, and the bytes of results and archives.
package rest

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"muster.example/gateway/limits"
	"muster.example/gateway/listen"
	musterv1 "muster.example/proto/gen/go/muster/v1"
	"muster.example/services/client/go"
	"muster.example/services/client/go/reasons"
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
	problem := described(answer)
	code, ok := statuses[problem.Code]
	switch {
	case problem.Reason == reasons.RequestTooLarge:
		code = http.StatusRequestEntityTooLarge
	case !ok:
		code = http.StatusInternalServerError
	}
	if answer.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int((answer.RetryAfter+time.Second-1)/time.Second)))
	}
	AnswerProblem(w, code, problem)
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

func grpcError(ctx context.Context, _ *runtime.ServeMux, _ runtime.Marshaler, w http.ResponseWriter, r *http.Request, err error) {
	answerFault(w, r, endOf(ctx, err))
}

// answerFault answers with the reason for which the body could not be read, or with an error of a service.
func answerFault(w http.ResponseWriter, r *http.Request, err error) {
	body, ok := r.Body.(*content)
	switch {
	case !ok || body.fault == nil || !errors.Is(err, body.fault) && status.Code(err) != codes.InvalidArgument:
		AnswerError(w, err) // of the service
	case body.refused:
		if body.code == http.StatusTooManyRequests {
			w.Header().Set("Retry-After", "1")
		}
		AnswerProblem(w, body.code, body.problem)
	case errors.Is(body.fault, os.ErrDeadlineExceeded):
		AnswerProblem(w, http.StatusRequestTimeout, RequestStalled())
	default:
		AnswerProblem(w, http.StatusBadRequest, InvalidBody(body.fault.Error()))
	}
}

// described returns an error of the transport with a reason and a next step: those of Muster have them.
func described(e *muster.Error) Problem {
	large := strings.Contains(e.Message, "larger than max")
	switch {
	case e.Reason != "":
	case e.Code == "RESOURCE_EXHAUSTED" && large && strings.Contains(e.Message, "grpc: received message"):
		return ResponseTooLarge(limits.Response)
	case e.Code == "RESOURCE_EXHAUSTED" && large:
		return MessageTooLarge(e.Message)
	case e.Code == "INVALID_ARGUMENT":
		return InvalidBody(e.Message)
	case e.Code == "UNIMPLEMENTED":
		return MethodMissing(e.Message)
	default:
		return Problem{Code: e.Code, Message: e.Message, Reason: e.Code, NextStep: e.NextStep}
	}
	return Problem{Code: e.Code, Message: e.Message, Reason: e.Reason, NextStep: e.NextStep}
}

// streamError returns the error with which a stream of messages ends; it has the reason and the next step as a detail.
func streamError(ctx context.Context, err error) *status.Status {
	err = endOf(ctx, err)
	if held, ok := ctx.Value(watchKey{}).(*watchWriter); ok {
		held.failure = err
	}
	plain := status.Convert(err)
	if len(plain.Details()) > 0 {
		return plain
	}
	problem := described(muster.AsError(err))
	return withReason(plain, problem, 0)
}

// endOf returns the error with which the gateway itself ended a watch, or the one of the service.
func endOf(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); errors.Is(cause, errStopping) || errors.Is(cause, ErrLate) {
		err = cause
	}
	return OwnError(err)
}

// withReason adds a reason, a next step and, unless it is 0, a wait to an error.
func withReason(plain *status.Status, p Problem, retryAfter time.Duration) *status.Status {
	detail := &musterv1.ErrorDetail{Reason: p.Reason, NextStep: p.NextStep}
	if retryAfter > 0 {
		detail.RetryAfter = durationpb.New(retryAfter)
	}
	detailed, err := plain.WithDetails(detail)
	if err != nil {
		return plain
	}
	return detailed
}

// TooManyConnectionsAnswer is the answer for a client with too many connections.
func TooManyConnectionsAnswer() listen.Answer { return tooMany(TooManyConnections()) }

// TooManyFramesAnswer is the answer for a client that has sent too many frames.
func TooManyFramesAnswer() listen.Answer { return tooMany(TooManyFrames(limits.FloodPause.String())) }

func tooMany(p Problem) listen.Answer {
	body, err := json.Marshal(p)
	if err != nil {
		panic(err) // strings can always be encoded
	}
	return listen.Answer{Code: http.StatusTooManyRequests, ContentType: "application/json", Body: string(body) + "\n"}
}

func (p operations) routingError(_ context.Context, _ *runtime.ServeMux, _ runtime.Marshaler, w http.ResponseWriter, r *http.Request, code int) {
	switch code {
	case http.StatusNotFound:
		AnswerProblem(w, code, PathNotFound(r.URL.Path, "List the paths: GET /api/v1/openapi.json."))
	case http.StatusMethodNotAllowed:
		w.Header().Set("Allow", strings.Join(p.methods(r.URL.Path), ", "))
		AnswerProblem(w, code, MethodNotAllowed(r.URL.Path, r.Method))
	default:
		AnswerProblem(w, code, BadRequest())
	}
}
