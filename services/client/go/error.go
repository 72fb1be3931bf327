package muster

import (
	"errors"
	"fmt"
	"regexp"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	musterv1 "muster.example/proto/gen/go/muster/v1"
	"muster.example/services/client/go/reasons"
)

// Error is an error of a service. Find it with errors.As.
type Error struct {
	// Code is the class, such as "NOT_FOUND", "PERMISSION_DENIED", "UNAVAILABLE".
	Code string
	// Reason is stable, for programs, such as "RESULT_CONFLICT"; docs/errors.md lists all. It is empty if the
	// error is not from Muster (for example, connection refused).
	Reason string
	// Message states what failed, with the object.
	Message string
	// NextStep is an imperative sentence for people. May be empty.
	NextStep string
	// RetryAfter is zero if the server did not ask for a wait.
	RetryAfter time.Duration
	// NewestAttempt is the attempt by which a lower one was refused (reason TAKEN_OVER); 0: unknown.
	NewestAttempt int64
}

// Error implements error.
func (e *Error) Error() string {
	text := e.Message
	if e.Reason != "" {
		text = fmt.Sprintf("%s (%s)", text, e.Reason)
	} else {
		text = fmt.Sprintf("%s (%s)", text, e.Code)
	}
	if e.NextStep != "" {
		text += ": " + e.NextStep
	}
	return text
}

// Retryable reports whether the same call may succeed later.
func (e *Error) Retryable() bool {
	switch e.Code {
	case "UNAVAILABLE", "RESOURCE_EXHAUSTED":
		return true
	case "INTERNAL", "UNKNOWN", "CANCELLED", "DEADLINE_EXCEEDED":
		// These come from the transport when a connection breaks; from Muster they are final.
		return e.Reason == "" || e.Reason == reasons.UploadStalled
	}
	return false
}

// BodyError reports that the body could not be read: nothing was committed.
type BodyError struct{ Err error }

// Error implements error.
func (e *BodyError) Error() string { return "cannot read the body: " + e.Err.Error() }

// Unwrap returns the reader's error.
func (e *BodyError) Unwrap() error { return e.Err }

// SpooledError reports that a disconnected relay has spooled the complete result until a time, and
// delivers it when it can. The result is not committed: keep the original.
type SpooledError struct {
	Relay string
	Until time.Time
}

// Error implements error.
func (e *SpooledError) Error() string {
	return fmt.Sprintf("relay %s cannot reach its parent and keeps the result until %s (RESULT_SPOOLED)",
		e.Relay, e.Until.UTC().Format(time.DateTime))
}

// LostError reports that a server needs bytes that a stream cannot provide again. Start a new delivery.
type LostError struct{ Wanted, Kept int64 }

// Error implements error.
func (e *LostError) Error() string {
	return fmt.Sprintf("the server needs byte %d, but the stream only has bytes from %d on: deliver again", e.Wanted, e.Kept)
}

var codeNames = map[codes.Code]string{
	codes.Canceled: "CANCELLED", codes.Unknown: "UNKNOWN", codes.InvalidArgument: "INVALID_ARGUMENT",
	codes.DeadlineExceeded: "DEADLINE_EXCEEDED", codes.NotFound: "NOT_FOUND",
	codes.AlreadyExists: "ALREADY_EXISTS", codes.PermissionDenied: "PERMISSION_DENIED",
	codes.ResourceExhausted: "RESOURCE_EXHAUSTED", codes.FailedPrecondition: "FAILED_PRECONDITION",
	codes.Aborted: "ABORTED", codes.OutOfRange: "OUT_OF_RANGE", codes.Unimplemented: "UNIMPLEMENTED",
	codes.Internal: "INTERNAL", codes.Unavailable: "UNAVAILABLE", codes.DataLoss: "DATA_LOSS",
	codes.Unauthenticated: "UNAUTHENTICATED",
}

// AsError returns the *Error that an error of this API contains; never nil for an error.
func AsError(err error) *Error {
	var answer *Error
	if errors.As(fromRPC(err), &answer) {
		return answer
	}
	return &Error{Code: "UNKNOWN", Message: err.Error()}
}

// dialFailure matches gRPC's text for a connection that was not established.
var dialFailure = regexp.MustCompile(`^connection error: desc = "transport: Error while dialing: dial \w+ (\S+): (?:connect: )?(.*)"$`)

// fromRPC converts the error of an RPC to an *Error; nil and other errors are unchanged.
func fromRPC(err error) error {
	if err == nil {
		return nil
	}
	var own *Error
	if errors.As(err, &own) {
		return err
	}
	answer, ok := status.FromError(err)
	if !ok {
		return err
	}
	result := &Error{Code: codeNames[answer.Code()], Message: dialFailure.ReplaceAllString(answer.Message(), "cannot connect to $1: $2")}
	for _, detail := range answer.Details() {
		if d, ok := detail.(*musterv1.ErrorDetail); ok {
			result.Reason, result.NextStep = d.GetReason(), d.GetNextStep()
			result.RetryAfter = d.GetRetryAfter().AsDuration()
			result.NewestAttempt = d.GetNewestAttempt()
		}
	}
	return result
}
