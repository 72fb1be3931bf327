// Code generated from services/common/errors/gateway.yaml by services/common/errors/generate. DO NOT EDIT.

package rest

import (
	"fmt"

	"muster.example/services/client/go/reasons"
)

// PathNotFound has the reason PATH_NOT_FOUND.
func PathNotFound(path string, nextStep string) Problem {
	return Problem{Code: "NOT_FOUND", Reason: reasons.PathNotFound, Message: fmt.Sprintf("path %v not found", path), NextStep: nextStep}
}

// MethodNotAllowed has the reason METHOD_NOT_ALLOWED.
func MethodNotAllowed(path string, method string) Problem {
	return Problem{Code: "UNIMPLEMENTED", Reason: reasons.MethodNotAllowed, Message: fmt.Sprintf("%v does not support %v", path, method), NextStep: "List the paths and methods: GET /api/v1/openapi.json."}
}

// StatusIsReadOnly has the reason METHOD_NOT_ALLOWED.
func StatusIsReadOnly() Problem {
	return Problem{Code: "UNIMPLEMENTED", Reason: reasons.MethodNotAllowed, Message: "the status can only be read", NextStep: "Use GET."}
}

// ListenerIsReadOnly has the reason METHOD_NOT_ALLOWED.
func ListenerIsReadOnly() Problem {
	return Problem{Code: "UNIMPLEMENTED", Reason: reasons.MethodNotAllowed, Message: "this listener is read-only", NextStep: "Send changes to the main listener of the gateway, with a certificate."}
}

// BadRequest has the reason BAD_REQUEST.
func BadRequest() Problem {
	return Problem{Code: "INVALID_ARGUMENT", Reason: reasons.BadRequest, Message: "invalid request", NextStep: "List the paths and methods: GET /api/v1/openapi.json."}
}

// ResultHasNoContent has the reason RESULT_NOT_FOUND.
func ResultHasNoContent(plugin string, node string, why string) Problem {
	return Problem{Code: "NOT_FOUND", Reason: reasons.ResultNotFound, Message: fmt.Sprintf("plugin \"%v\" has no result from node \"%v\"%v", plugin, node, optional(": ", why, "")), NextStep: "GET the same path without /content to see its outcome."}
}

// RangeOutside has the reason RANGE_OUTSIDE.
func RangeOutside(asked string, size int64) Problem {
	return Problem{Code: "OUT_OF_RANGE", Reason: reasons.RangeOutside, Message: fmt.Sprintf("range \"%v\" is outside the content of %v bytes", asked, size), NextStep: "Request a range within the content."}
}

// OperatorsOnly has the reason ROLE_NOT_ALLOWED.
func OperatorsOnly() Problem {
	return Problem{Code: "PERMISSION_DENIED", Reason: reasons.RoleNotAllowed, Message: "only operators may sign in browsers", NextStep: "Use the certificate of an operator: muster operator add."}
}

// ViewersOnly has the reason ROLE_NOT_ALLOWED.
func ViewersOnly() Problem {
	return Problem{Code: "PERMISSION_DENIED", Reason: reasons.RoleNotAllowed, Message: "the certificate names neither an operator nor a viewer of a run", NextStep: "Use the certificate of a credentials file (muster run writes one), or of an operator."}
}

// IdentityUnknown has the reason IDENTITY_UNKNOWN.
func IdentityUnknown() Problem {
	return Problem{Code: "PERMISSION_DENIED", Reason: reasons.IdentityUnknown, Message: "the certificate names no member of this fleet", NextStep: "Use a certificate that muster operator add or muster credentials export issued."}
}

// CertificateMissing has the reason CERTIFICATE_MISSING.
func CertificateMissing() Problem {
	return Problem{Code: "UNAUTHENTICATED", Reason: reasons.CertificateMissing, Message: "the request has neither a certificate nor a session", NextStep: "Use the certificate of a credentials file (muster run writes one), or sign in: muster dashboard."}
}

// RevokedIdentity has the reason REVOKED.
func RevokedIdentity(uri string) Problem {
	return Problem{Code: "PERMISSION_DENIED", Reason: reasons.Revoked, Message: fmt.Sprintf("%v was revoked", uri), NextStep: "Ask an operator for a new identity."}
}

// RunNotShown has the reason NOT_YOURS.
func RunNotShown(asked string, run string) Problem {
	return Problem{Code: "PERMISSION_DENIED", Reason: reasons.NotYours, Message: fmt.Sprintf("this caller may read run %v and not run \"%v\"", run, asked), NextStep: "Omit run=, or ask the status listener of the fleet with the credentials of that run or of an operator."}
}

// NoRelay has the reason NO_RELAY.
func NoRelay() Problem {
	return Problem{Code: "UNAVAILABLE", Reason: reasons.NoRelay, Message: "the configuration of the gateway names no relay", NextStep: "Add the address of the root relay to relay_targets."}
}
