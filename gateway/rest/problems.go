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

// CrossSiteRequest has the reason CROSS_SITE_REQUEST.
func CrossSiteRequest() Problem {
	return Problem{Code: "PERMISSION_DENIED", Reason: reasons.CrossSiteRequest, Message: "a web page of another site sent the request", NextStep: "Send changes with muster or another program, without the headers Origin and Sec-Fetch-Site."}
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

// TooManyConnections has the reason TOO_MANY_CONNECTIONS.
func TooManyConnections() Problem {
	return Problem{Code: "RESOURCE_EXHAUSTED", Reason: reasons.TooManyConnections, Message: "this identity has too many open connections to the gateway", NextStep: "Close some of them, or raise limits.connections_per_identity in the configuration of the gateway."}
}

// TooManyFrames has the reason TOO_MANY_FRAMES.
func TooManyFrames(pause string) Problem {
	return Problem{Code: "RESOURCE_EXHAUSTED", Reason: reasons.TooManyFrames, Message: fmt.Sprintf("this client sent more HTTP/2 frames than the gateway accepts, so its connections are refused for %v", pause), NextStep: "Find the program that resets its requests or floods the connection, stop it, and connect again."}
}

// TooManyRequests has the reason TOO_MANY_REQUESTS.
func TooManyRequests(limit int64) Problem {
	return Problem{Code: "RESOURCE_EXHAUSTED", Reason: reasons.TooManyRequests, Message: fmt.Sprintf("this identity has %v requests in progress at the gateway", limit), NextStep: "Send fewer requests at a time, and wait for the answers to earlier ones."}
}

// StatusUnreachable has the reason STATUS_UNREACHABLE.
func StatusUnreachable(cause string) Problem {
	return Problem{Code: "UNAVAILABLE", Reason: reasons.StatusUnreachable, Message: fmt.Sprintf("the gateway has no answer of the status service: %v", cause), NextStep: "Check that the status service is running and not stopped, and read its log."}
}

// StatusSlow has the reason STATUS_SLOW.
func StatusSlow(cause string) Problem {
	return Problem{Code: "UNAVAILABLE", Reason: reasons.StatusSlow, Message: fmt.Sprintf("the status service is slow: %v", cause), NextStep: "Send the request again: for a run that ended earlier, the service first reads the pairs from the aggregator. If the error persists, check that both are running and not stopped, and read their logs."}
}

// TooManyStatusBytes has the reason TOO_MANY_STATUS_BYTES.
func TooManyStatusBytes(limit int64) Problem {
	return Problem{Code: "RESOURCE_EXHAUSTED", Reason: reasons.TooManyStatusBytes, Message: fmt.Sprintf("this client has not read %v bytes of its earlier answers of the status", limit), NextStep: "Read each answer to its end before the next request, and request only=attention."}
}

// TooManyUnreadBytes has the reason TOO_MANY_STATUS_BYTES.
func TooManyUnreadBytes(limit int64) Problem {
	return Problem{Code: "RESOURCE_EXHAUSTED", Reason: reasons.TooManyStatusBytes, Message: fmt.Sprintf("all clients together have not read %v bytes of earlier answers of the status", limit), NextStep: "Send the request again in a moment. The log of the gateway names the slowest reader."}
}

// RequestStalled has the reason REQUEST_STALLED.
func RequestStalled() Problem {
	return Problem{Code: "DEADLINE_EXCEEDED", Reason: reasons.RequestStalled, Message: "the body of the request was slower than 1 KiB/s for 60 s", NextStep: "Send the request again, with its whole body."}
}

// RequestTooLarge has the reason REQUEST_TOO_LARGE.
func RequestTooLarge(limit int64) Problem {
	return Problem{Code: "INVALID_ARGUMENT", Reason: reasons.RequestTooLarge, Message: fmt.Sprintf("the body of the request is larger than %v bytes", limit), NextStep: "Split the request into smaller ones."}
}

// InvalidBody has the reason BAD_REQUEST.
func InvalidBody(fault string) Problem {
	return Problem{Code: "INVALID_ARGUMENT", Reason: reasons.BadRequest, Message: fmt.Sprintf("cannot parse the request: %v", fault), NextStep: "Correct the request: GET /api/v1/openapi.json describes its fields."}
}

// ResponseTooLarge has the reason RESPONSE_TOO_LARGE.
func ResponseTooLarge(limit int64) Problem {
	return Problem{Code: "INVALID_ARGUMENT", Reason: reasons.ResponseTooLarge, Message: fmt.Sprintf("the response of the service is larger than %v bytes", limit), NextStep: "Request less at once, with page_size."}
}

// MessageTooLarge has the reason REQUEST_TOO_LARGE.
func MessageTooLarge(fault string) Problem {
	return Problem{Code: "INVALID_ARGUMENT", Reason: reasons.RequestTooLarge, Message: fmt.Sprintf("the request is larger than the service accepts: %v", fault), NextStep: "Split the request into smaller ones."}
}

// MethodMissing has the reason UNKNOWN_METHOD.
func MethodMissing(fault string) Problem {
	return Problem{Code: "UNIMPLEMENTED", Reason: reasons.UnknownMethod, Message: fmt.Sprintf("the service does not have this method: %v", fault), NextStep: "Check that gateway and services have the same version, and that status_targets of the gateway names the status service."}
}

// RoleRefused has the reason ROLE_NOT_ALLOWED.
func RoleRefused(caller string, method string, roles string) Problem {
	return Problem{Code: "PERMISSION_DENIED", Reason: reasons.RoleNotAllowed, Message: fmt.Sprintf("%v may not call %v", caller, method), NextStep: fmt.Sprintf("Use the certificate of one of: %v.", roles)}
}

// NotThroughGateway has the reason ROLE_NOT_ALLOWED.
func NotThroughGateway(caller string, method string) Problem {
	return Problem{Code: "PERMISSION_DENIED", Reason: reasons.RoleNotAllowed, Message: fmt.Sprintf("%v may not call %v through a gateway or relay", caller, method), NextStep: "Call the service directly, with the certificate of the caller."}
}

// InvalidRun has the reason INVALID_NAME.
func InvalidRun(run string) Problem {
	return Problem{Code: "INVALID_ARGUMENT", Reason: reasons.InvalidName, Message: fmt.Sprintf("invalid run id \"%v\"", run), NextStep: "Give the 16 lower-case hex digits of a run: muster runs."}
}

// NoRelay has the reason NO_RELAY.
func NoRelay() Problem {
	return Problem{Code: "UNAVAILABLE", Reason: reasons.NoRelay, Message: "the configuration of the gateway names no relay", NextStep: "Add the address of the root relay to relay_targets."}
}

// NoTunnels has the reason NO_TUNNELS.
func NoTunnels() Problem {
	return Problem{Code: "UNAVAILABLE", Reason: reasons.NoTunnels, Message: "the configuration of the gateway names no listener to which it connects tunnels of this path", NextStep: "Set tunnel_relay to the address of the root relay, and tunnel_join to that of the join listener."}
}

// TunnelExpected has the reason TUNNEL_EXPECTED.
func TunnelExpected() Problem {
	return Problem{Code: "INVALID_ARGUMENT", Reason: reasons.TunnelExpected, Message: "this path serves tunnels over WebSocket alone", NextStep: "Send a GET request that upgrades to WebSocket with the subprotocol muster.tunnel.v1. A proxy in the way may have removed the header Upgrade."}
}

// TooManyTunnels has the reason TOO_MANY_TUNNELS.
func TooManyTunnels(each int64, all int64) Problem {
	return Problem{Code: "RESOURCE_EXHAUSTED", Reason: reasons.TooManyTunnels, Message: fmt.Sprintf("this address has %v tunnels, or the gateway has %v", each, all), NextStep: "Wait, or raise limits.tunnels_per_address and limits.tunnels of the gateway."}
}

// TunnelTargetUnreachable has the reason TUNNEL_TARGET_UNREACHABLE.
func TunnelTargetUnreachable() Problem {
	return Problem{Code: "UNAVAILABLE", Reason: reasons.TunnelTargetUnreachable, Message: "the gateway does not reach the listener to which it connects tunnels of this path", NextStep: "Check that the relay runs. The log of the gateway has the cause."}
}

// NoJobs has the reason NO_JOBS.
func NoJobs() Problem {
	return Problem{Code: "UNAVAILABLE", Reason: reasons.NoJobs, Message: "the configuration of the gateway names no jobs service", NextStep: "Add the address of the jobs service to jobs_targets."}
}

// UnknownField has the reason UNKNOWN_FIELD.
func UnknownField(field string, nextStep string) Problem {
	return Problem{Code: "INVALID_ARGUMENT", Reason: reasons.UnknownField, Message: fmt.Sprintf("the body has the unknown field \"%v\"", field), NextStep: nextStep}
}

// UnknownParameter has the reason UNKNOWN_PARAMETER.
func UnknownParameter(parameter string, nextStep string) Problem {
	return Problem{Code: "INVALID_ARGUMENT", Reason: reasons.UnknownParameter, Message: fmt.Sprintf("the query has the unknown parameter \"%v\"", parameter), NextStep: nextStep}
}

// TooManyBodyBytes has the reason TOO_MANY_REQUEST_BYTES.
func TooManyBodyBytes(limit int64) Problem {
	return Problem{Code: "RESOURCE_EXHAUSTED", Reason: reasons.TooManyRequestBytes, Message: fmt.Sprintf("requests in progress already take %v bytes", limit), NextStep: "Wait for the answers to earlier requests."}
}

// TooManyDownloads has the reason TOO_MANY_DOWNLOADS.
func TooManyDownloads(each int64, all int64) Problem {
	return Problem{Code: "RESOURCE_EXHAUSTED", Reason: reasons.TooManyDownloads, Message: fmt.Sprintf("this identity has %v downloads in progress, or the gateway has %v", each, all), NextStep: "Wait for earlier downloads, or download by gRPC from the aggregator."}
}

// TooManyWatches has the reason TOO_MANY_STREAMS.
func TooManyWatches(each int64, all int64) Problem {
	return Problem{Code: "RESOURCE_EXHAUSTED", Reason: reasons.TooManyStreams, Message: fmt.Sprintf("this identity has %v open watches, or the gateway has %v", each, all), NextStep: "Close watches that are not needed, and let programs share one."}
}

// GatewayStopping has the reason GATEWAY_STOPPING.
func GatewayStopping() Problem {
	return Problem{Code: "UNAVAILABLE", Reason: reasons.GatewayStopping, Message: "the gateway is stopping", NextStep: "Send the request again in a moment."}
}
