// Generated from joining.yaml by services/common/errors/generate: change that file.
// clang-format off
#ifndef MUSTER_SERVICES_COMMON_ERRORS_JOINING_H_
#define MUSTER_SERVICES_COMMON_ERRORS_JOINING_H_

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"

// Nodes, operators and joining.
namespace muster::errors {

// NOT_FOUND, OPERATOR_NOT_FOUND.
absl::Status OperatorNotFound(std::string_view name);
// FAILED_PRECONDITION, OPERATOR_REVOKED.
absl::Status OperatorRevoked(std::string_view name);
// FAILED_PRECONDITION, OWN_OPERATOR.
absl::Status OwnOperator(std::string_view name);
// INVALID_ARGUMENT, INVALID_TOKEN.
absl::Status InvalidToken(std::string_view why);
// INVALID_ARGUMENT, INVALID_TOKEN_FILE.
absl::Status InvalidTokenFile(std::string_view why);
// ALREADY_EXISTS, TOKEN_EXISTS.
absl::Status TokenExists(std::string_view id);
// RESOURCE_EXHAUSTED, TOO_MANY_TOKENS.
absl::Status TooManyTokens(int64_t limit);
// NOT_FOUND, TOKEN_NOT_FOUND.
absl::Status TokenNotFound(std::string_view id);
// INVALID_ARGUMENT, INVALID_LABEL.
absl::Status InvalidLabel(std::string_view why);
// NOT_FOUND, NODE_NOT_ENROLLED.
absl::Status NodeNotEnrolled(std::string_view node);
// RESOURCE_EXHAUSTED, RENEWAL_LIMIT.
absl::Status RenewalLimit(std::string_view uri, int64_t limit);
// PERMISSION_DENIED, CERTIFICATE_REVOKED.
absl::Status CertificateRevoked(std::string_view uri);
// PERMISSION_DENIED, NODE_REVOKED.
absl::Status NodeRevoked(std::string_view node);
// PERMISSION_DENIED, NODE_REVOKED.
absl::Status TokenForRevokedNode(std::string_view node);
// PERMISSION_DENIED, TOKEN_REFUSED.
absl::Status TokenRefused();
// PERMISSION_DENIED, TOKEN_EXPIRED.
absl::Status TokenExpired();
// PERMISSION_DENIED, TOKEN_USED.
absl::Status TokenUsed();
// PERMISSION_DENIED, TOKEN_OF_OTHER_NODE.
absl::Status TokenOfOtherNode();
// PERMISSION_DENIED, NODE_ENROLLED.
absl::Status NodeEnrolled(std::string_view node);
// FAILED_PRECONDITION, NAME_OF_OTHER_KIND.
absl::Status NameOfOtherKind(std::string_view name, std::string_view kind);
// PERMISSION_DENIED, TOKEN_OF_OTHER_KIND.
absl::Status TokenIsForRelay();
// PERMISSION_DENIED, TOKEN_OF_OTHER_KIND.
absl::Status TokenIsForNode();
// NOT_FOUND, RELAY_NOT_FOUND.
absl::Status RelayNotFound(std::string_view relay);
// FAILED_PRECONDITION, RELAY_LOOP.
absl::Status RelayWouldLoop(std::string_view relay, std::string_view parent);
// INVALID_ARGUMENT, INVALID_TARGET.
absl::Status InvalidTarget(std::string_view why);
// UNAUTHENTICATED, RETURN_REFUSED.
absl::Status ReturnRefused(std::string_view why);
// PERMISSION_DENIED, RETURN_TOO_LATE.
absl::Status ReturnTooLate();
// FAILED_PRECONDITION, NO_JOIN_TARGET.
absl::Status NoJoinTarget(std::string_view folder);
// UNAUTHENTICATED, JOIN_ANSWER_UNUSABLE.
absl::Status JoinAnswerUnusable(std::string_view why);
// FAILED_PRECONDITION, ALREADY_JOINED.
absl::Status AlreadyJoined(std::string_view folder);
// FAILED_PRECONDITION, INVALID_MEMBER_FILE.
absl::Status InvalidMemberFile(std::string_view path, std::string_view fault);
// FAILED_PRECONDITION, NOT_JOINED.
absl::Status NoMemberFile(std::string_view folder);
// FAILED_PRECONDITION, NOT_JOINED.
absl::Status NotANodeFolder(std::string_view folder, std::string_view why);
// FAILED_PRECONDITION, NO_RELAY_IDENTITY.
absl::Status NoRelayIdentity(std::string_view folder, std::string_view why);
// INVALID_ARGUMENT, INVALID_LINK.
absl::Status InvalidLink(std::string_view value);

}  // namespace muster::errors

#endif  // MUSTER_SERVICES_COMMON_ERRORS_JOINING_H_
