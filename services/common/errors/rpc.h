// Generated from rpc.yaml by services/common/errors/generate: change that file.
// clang-format off
#ifndef MUSTER_SERVICES_COMMON_ERRORS_RPC_H_
#define MUSTER_SERVICES_COMMON_ERRORS_RPC_H_

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "absl/time/time.h"

// Connections.
namespace muster::errors {

// UNAUTHENTICATED, NO_CERTIFICATE.
absl::Status NoCertificate();
// UNAUTHENTICATED, CERTIFICATE_EXPIRED.
absl::Status ConnectionCertificateExpired();
// PERMISSION_DENIED, IDENTITY_NOT_FORWARDABLE.
absl::Status IdentityNotForwardable(std::string_view key, std::string_view why);
// PERMISSION_DENIED, REVOKED.
absl::Status CallerRevoked();
// PERMISSION_DENIED, OPERATOR_NOT_RECORDED.
absl::Status OperatorNotRecorded(std::string_view uri, std::string_view gateway);
// INTERNAL, LISTEN_FAILED.
absl::Status ListenFailed(std::string_view address);
// INTERNAL, NOT_AUTHORIZED_BY_HANDLER.
absl::Status NotAuthorizedByHandler(std::string_view method);
// UNAVAILABLE, UNREACHABLE.
absl::Status Unreachable(std::string_view why);
// UNAVAILABLE, SERVER_CERTIFICATE_REFUSED.
absl::Status ServerCertificateRefused(std::string_view address, std::string_view why);
// UNAVAILABLE, HTTP2_REFUSED.
absl::Status Http2Refused(std::string_view address);
// UNAVAILABLE, TUNNEL_FAILED.
absl::Status TunnelFailed(std::string_view address, std::string_view why);
// UNAVAILABLE, PROXY_FAILED.
absl::Status ProxyFailed(std::string_view cause, std::string_view variable);
// DEADLINE_EXCEEDED, NO_FIRST_MESSAGE.
absl::Status NoFirstMessage(absl::Duration within);
// INVALID_ARGUMENT, NO_READABLE_MESSAGE.
absl::Status NoReadableMessage();
// INTERNAL, UNREADABLE_ANSWER.
absl::Status UnreadableAnswer();
// RESOURCE_EXHAUSTED, TOO_MANY_STREAMS.
absl::Status TooManyStreams(std::string_view method, int64_t limit);
// RESOURCE_EXHAUSTED, TOO_MANY_REQUEST_BYTES.
absl::Status TooManyRequestBytes(int64_t limit);
// RESOURCE_EXHAUSTED, TOO_MANY_ANSWER_BYTES.
absl::Status TooManyAnswerBytes(int64_t limit);
// RESOURCE_EXHAUSTED, TOO_MANY_STREAMS_OF_CALLER.
absl::Status TooManyStreamsOfCaller(std::string_view method, int64_t limit);
// RESOURCE_EXHAUSTED, MESSAGE_TOO_LARGE.
absl::Status MessageTooLarge(int64_t bytes, int64_t limit);
// RESOURCE_EXHAUSTED, TOO_MANY_CALLS.
absl::Status TooManyCalls(int64_t limit);
// RESOURCE_EXHAUSTED, TOO_MANY_WAITING_CALLS.
absl::Status TooManyWaitingCalls(int64_t limit);

}  // namespace muster::errors

#endif  // MUSTER_SERVICES_COMMON_ERRORS_RPC_H_
