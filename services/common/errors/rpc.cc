// Generated from rpc.yaml by services/common/errors/generate: change that file.
// clang-format off
#include "services/common/errors/rpc.h"

#include "absl/strings/str_cat.h"
#include "services/common/base/error.h"
#include "services/common/base/strings.h"

namespace muster::errors {

absl::Status NoCertificate() {
  return MakeError(absl::StatusCode::kUnauthenticated, "NO_CERTIFICATE",
                   "the connection has no verified certificate",
                   "Connect over TLS with a client certificate of this fleet.");
}

absl::Status ConnectionCertificateExpired() {
  return MakeError(absl::StatusCode::kUnauthenticated, "CERTIFICATE_EXPIRED",
                   "the certificate of this connection has expired",
                   "Renew the certificate and connect again.");
}

absl::Status IdentityNotForwardable(std::string_view key, std::string_view why) {
  return MakeError(absl::StatusCode::kPermissionDenied, "IDENTITY_NOT_FORWARDABLE",
                   absl::StrCat("invalid metadata ", ToAbsl(key), ": ", ToAbsl(why)),
                   "Send each key once: a gateway sends the identity of a client, a relay sends that of a node with a valid attach statement.");
}

absl::Status CallerRevoked() {
  return MakeError(absl::StatusCode::kPermissionDenied, "REVOKED",
                   "this identity was revoked",
                   "Ask an operator for a new credential. A node joins again with a new token and an empty folder, after `muster node remove`.");
}

absl::Status OperatorNotRecorded(std::string_view uri, std::string_view gateway) {
  return MakeError(absl::StatusCode::kPermissionDenied, "OPERATOR_NOT_RECORDED",
                   absl::StrCat(ToAbsl(gateway), " forwards ", ToAbsl(uri), ", to which this fleet has issued no certificate that is still valid"),
                   "Add the operator: muster operator add. If no client has this name, the key of the gateway is in other hands: replace the gateway.");
}

absl::Status ListenFailed(std::string_view address) {
  return MakeError(absl::StatusCode::kInternal, "LISTEN_FAILED",
                   absl::StrCat("cannot listen on ", ToAbsl(address)),
                   "Check that no other program uses the port and that the address belongs to this machine.");
}

absl::Status NotAuthorizedByHandler(std::string_view method) {
  return MakeError(absl::StatusCode::kInternal, "NOT_AUTHORIZED_BY_HANDLER",
                   absl::StrCat("the handler of ", ToAbsl(method), " did not authorise the call"),
                   "Report it: this is a defect of the service.");
}

absl::Status Unreachable(std::string_view why) {
  return MakeError(absl::StatusCode::kUnavailable, "UNREACHABLE",
                   why,
                   "Check the address and that the service runs. If it does, read its log: an expired, revoked or foreign certificate causes the same error.");
}

absl::Status ServerCertificateRefused(std::string_view address, std::string_view why) {
  return MakeError(absl::StatusCode::kUnavailable, "SERVER_CERTIFICATE_REFUSED",
                   absl::StrCat("the certificate of the server at ", ToAbsl(address), " is refused: ", ToAbsl(why)),
                   "Check that the address and the files of this program (context, credentials, join token or identity folder) are of the same fleet, and that this machine's clock is right.");
}

absl::Status Http2Refused(std::string_view address) {
  return MakeError(absl::StatusCode::kUnavailable, "HTTP2_REFUSED",
                   absl::StrCat("the TLS handshake with ", ToAbsl(address), " ended without HTTP/2"),
                   "Check that the address is that of a service of Muster. If a proxy in the way passes no HTTP/2, exempt the address from its inspection, or use a tunnel: docs/relays.md#tunnels.");
}

absl::Status TunnelFailed(std::string_view address, std::string_view why) {
  return MakeError(absl::StatusCode::kUnavailable, "TUNNEL_FAILED",
                   absl::StrCat("cannot connect through the tunnel ", ToAbsl(address), ": ", ToAbsl(why)),
                   "Check that the address is that of the status listener of the gateway, and that the proxy in the way passes WebSocket. The log of the gateway says why it ended a tunnel.");
}

absl::Status ProxyFailed(std::string_view cause, std::string_view variable) {
  return MakeError(absl::StatusCode::kUnavailable, "PROXY_FAILED",
                   cause,
                   absl::StrCat("Check the proxy in the environment variable ", ToAbsl(variable), ". To connect without it, add the service's host to no_proxy."));
}

absl::Status NoFirstMessage(absl::Duration within) {
  return MakeError(absl::StatusCode::kDeadlineExceeded, "NO_FIRST_MESSAGE",
                   absl::StrCat("no message was received within ", absl::FormatDuration(within), " after the stream began"),
                   "Send the first message as soon as the stream is open.");
}

absl::Status NoReadableMessage() {
  return MakeError(absl::StatusCode::kInvalidArgument, "NO_READABLE_MESSAGE",
                   "the client ended the stream where a message was due, or sent bytes that are no message of this method",
                   "Send messages of the service's API, and cancel the call to end it.");
}

absl::Status UnreadableAnswer() {
  return MakeError(absl::StatusCode::kInternal, "UNREADABLE_ANSWER",
                   "the service sent bytes that are no message, and left the call open",
                   "Check that the address is that of the service, and that the service and this program have the same version.");
}

absl::Status TooManyStreams(std::string_view method, int64_t limit) {
  return WithRetryAfter(MakeError(absl::StatusCode::kResourceExhausted, "TOO_MANY_STREAMS",
                   absl::StrCat("the service already has ", limit, " open streams of ", ToAbsl(method)),
                   "Try again later."),
                        absl::Seconds(10));
}

absl::Status TooManyRequestBytes(int64_t limit) {
  return WithRetryAfter(MakeError(absl::StatusCode::kResourceExhausted, "TOO_MANY_REQUEST_BYTES",
                   absl::StrCat("requests of this identity already take ", limit, " bytes"),
                   "Wait for the answers to earlier requests."),
                        absl::Seconds(1));
}

absl::Status TooManyAnswerBytes(int64_t limit) {
  return WithRetryAfter(MakeError(absl::StatusCode::kResourceExhausted, "TOO_MANY_ANSWER_BYTES",
                   absl::StrCat("answers that this identity has not read already take ", limit, " bytes"),
                   "Read the answers to earlier calls."),
                        absl::Seconds(1));
}

absl::Status TooManyStreamsOfCaller(std::string_view method, int64_t limit) {
  return WithRetryAfter(MakeError(absl::StatusCode::kResourceExhausted, "TOO_MANY_STREAMS_OF_CALLER",
                   absl::StrCat("this identity already has ", limit, " open streams of ", ToAbsl(method)),
                   "Close streams that are not needed, and give each program its own identity."),
                        absl::Seconds(1));
}

absl::Status MessageTooLarge(int64_t bytes, int64_t limit) {
  return MakeError(absl::StatusCode::kResourceExhausted, "MESSAGE_TOO_LARGE",
                   absl::StrCat("a message of ", bytes, " bytes is larger than the ", limit, " bytes that this identity may send"),
                   "Send smaller messages, for example a plan with fewer nodes.");
}

absl::Status TooManyCalls(int64_t limit) {
  return WithRetryAfter(MakeError(absl::StatusCode::kResourceExhausted, "TOO_MANY_CALLS",
                   absl::StrCat("this identity makes more than ", limit, " calls per second"),
                   "Call less often, and give each program its own identity."),
                        absl::Seconds(1));
}

absl::Status TooManyWaitingCalls(int64_t limit) {
  return WithRetryAfter(MakeError(absl::StatusCode::kResourceExhausted, "TOO_MANY_WAITING_CALLS",
                   absl::StrCat(limit, " calls of this identity wait for a thread"),
                   "Wait for the answers to earlier calls."),
                        absl::Seconds(1));
}

}  // namespace muster::errors
