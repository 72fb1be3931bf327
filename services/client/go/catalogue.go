// Code generated from services/common/errors/goclient.yaml by services/common/errors/generate. DO NOT EDIT.

package muster

import (
	"muster.example/services/client/go/reasons"
)

// errStatusNotConfigured has the reason STATUS_NOT_CONFIGURED.
func errStatusNotConfigured() *Error {
	return &Error{Code: "UNAVAILABLE", Reason: reasons.StatusNotConfigured, Message: "no status service is configured", NextStep: "Configure the addresses of the status service."}
}

// errHeartbeatsUnanswered has the reason HEARTBEATS_LOST.
func errHeartbeatsUnanswered() *Error {
	return &Error{Code: "UNAVAILABLE", Reason: reasons.HeartbeatsLost, Message: "the status service does not answer heartbeats", NextStep: "Check that muster-status runs and that StatusTargets names it."}
}

// errHeartbeatsEnded has the reason HEARTBEATS_LOST.
func errHeartbeatsEnded() *Error {
	return &Error{Code: "UNAVAILABLE", Reason: reasons.HeartbeatsLost, Message: "the status service ended the stream of heartbeats", NextStep: "The sender connects again. If this lasts, look at the log of muster-status."}
}

// errUnexpectedAnswer has the reason UNEXPECTED_ANSWER.
func errUnexpectedAnswer(answer string) *Error {
	return &Error{Code: "FAILED_PRECONDITION", Reason: reasons.UnexpectedAnswer, Message: answer, NextStep: "Check that the URL is that of the legacy listener of a run."}
}
