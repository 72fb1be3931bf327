// Generated from relay.yaml by services/common/errors/generate: change that file.
// clang-format off
#ifndef MUSTER_SERVICES_COMMON_ERRORS_RELAY_H_
#define MUSTER_SERVICES_COMMON_ERRORS_RELAY_H_

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"

// Relays.
namespace muster::errors {

// PERMISSION_DENIED, NOT_ATTACHED.
absl::Status NotAttached(std::string_view who);
// PERMISSION_DENIED, NOT_ATTACHED.
absl::Status NoLiveStatement(std::string_view node, std::string_view relay);
// RESOURCE_EXHAUSTED, TOO_MANY_INVALID_STATEMENTS.
absl::Status TooManyInvalidStatements(std::string_view relay);
// UNAVAILABLE, RELAY_CUT_OFF.
absl::Status RelayCutOff();
// UNAVAILABLE, JOBS_UNREACHABLE.
absl::Status JobsUnreachable();
// UNIMPLEMENTED, RELAY_DOES_NOT_SERVE.
absl::Status RelayDoesNotServe(std::string_view method);
// UNAVAILABLE, RELAY_STOPPING.
absl::Status RelayStopping();
// RESOURCE_EXHAUSTED, SPOOL_FULL.
absl::Status SpoolFull(std::string_view limit);
// DATA_LOSS, SPOOL_DAMAGED.
absl::Status SpoolDamaged(std::string_view path, std::string_view why);
// INVALID_ARGUMENT, INVALID_ATTACHMENT.
absl::Status InvalidAttachment(std::string_view why);
// PERMISSION_DENIED, STATEMENT_REFUSED.
absl::Status StatementRefused(std::string_view why);
// DEADLINE_EXCEEDED, STATEMENT_EXPIRED.
absl::Status StatementExpired();
// DEADLINE_EXCEEDED, NO_HELLO.
absl::Status NoHello();
// FAILED_PRECONDITION, RELAY_LOOP.
absl::Status RelayLoop(std::string_view relay, std::string_view parent);
// FAILED_PRECONDITION, RELAY_TOO_DEEP.
absl::Status RelayTooDeep(std::string_view relay, int64_t limit);
// RESOURCE_EXHAUSTED, TOO_MANY_CHILDREN.
absl::Status TooManyChildren(int64_t limit);
// ABORTED, TAKEN_OVER.
absl::Status ChildTakenOver(std::string_view child);
// ABORTED, DUPLICATE_AGENT.
absl::Status DuplicateProcess(std::string_view child);
// RESOURCE_EXHAUSTED, CHILD_STUCK.
absl::Status ChildStuck(std::string_view child);
// UNAUTHENTICATED, IDENTITY_REVOKED.
absl::Status IdentityRevoked(std::string_view uri);
// UNAVAILABLE, RELAY_REVOKED.
absl::Status RelayRevoked(std::string_view relay);
// UNAUTHENTICATED, RELAY_REFUSED.
absl::Status RelayRefused(std::string_view why);
// NOT_FOUND, RELAY_NOT_FOUND.
absl::Status RelayNotInTree(std::string_view relay);
// UNAVAILABLE, RELAY_NOT_REACHED.
absl::Status RelayNotReached(std::string_view relay, std::string_view why);
// INTERNAL, RELAY_FAILED.
absl::Status RelayFailed(std::string_view relay, std::string_view fault);

}  // namespace muster::errors

#endif  // MUSTER_SERVICES_COMMON_ERRORS_RELAY_H_
