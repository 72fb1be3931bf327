// Generated from workspaces.yaml by services/common/errors/generate: change that file.
// clang-format off
#ifndef MUSTER_SERVICES_COMMON_ERRORS_WORKSPACES_H_
#define MUSTER_SERVICES_COMMON_ERRORS_WORKSPACES_H_

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"

// Workspaces.
namespace muster::errors {

// INVALID_ARGUMENT, INVALID_WORKSPACE.
absl::Status InvalidWorkspace(std::string_view why);
// NOT_FOUND, WORKSPACE_NOT_FOUND.
absl::Status WorkspaceNotFound(std::string_view workspace);
// NOT_FOUND, WORKSPACE_VERSION_NOT_FOUND.
absl::Status WorkspaceVersionNotFound(std::string_view workspace, int64_t version);
// FAILED_PRECONDITION, WORKSPACE_IN_USE.
absl::Status WorkspaceInUse(std::string_view workspace, std::string_view deployment, std::string_view since);
// FAILED_PRECONDITION, WORKSPACE_SUSPECT.
absl::Status WorkspaceSuspect(std::string_view workspace, std::string_view deployment, std::string_view why);
// FAILED_PRECONDITION, WORKSPACE_IN_USE.
absl::Status SavingWorkspaceNotDeleted(std::string_view workspace, std::string_view deployment, std::string_view node);
// FAILED_PRECONDITION, WORKSPACE_SUSPECT.
absl::Status SuspectWorkspaceNotDeleted(std::string_view workspace, std::string_view deployment, std::string_view why);
// PERMISSION_DENIED, WORKSPACE_NOT_TAKEN.
absl::Status WorkspaceNotTakenThroughGateway(std::string_view caller);
// FAILED_PRECONDITION, WORKSPACE_DELETED.
absl::Status WorkspaceDeleted(std::string_view workspace, std::string_view deployment, std::string_view what);
// FAILED_PRECONDITION, WORKSPACE_IN_USE.
absl::Status WorkspaceOfOther(std::string_view workspace, std::string_view deployment, std::string_view named);
// FAILED_PRECONDITION, WORKSPACE_CHANGED.
absl::Status WorkspaceChanged(std::string_view workspace, int64_t named, int64_t latest);
// RESOURCE_EXHAUSTED, TOO_MANY_WORKSPACES.
absl::Status TooManyWorkspaces(int64_t limit);
// RESOURCE_EXHAUSTED, WORKSPACE_QUOTA.
absl::Status WorkspaceQuota(int64_t limit);
// PERMISSION_DENIED, WORKSPACE_REFUSED.
absl::Status WorkspaceRefused(std::string_view why);
// FAILED_PRECONDITION, WORKSPACE_LOST.
absl::Status WorkspaceLost(std::string_view workspace, std::string_view deployment, std::string_view why);
// DATA_LOSS, WORKSPACE_DAMAGED.
absl::Status WorkspaceDamaged(std::string_view workspace, int64_t version);
// DATA_LOSS, DIGEST_MISMATCH.
absl::Status WorkspaceDigestMismatch(std::string_view workspace);
// UNAVAILABLE, WORKSPACE_UNAVAILABLE.
absl::Status WorkspaceUnavailable(std::string_view why);
// RESOURCE_EXHAUSTED, WORKSPACE_TOO_LARGE.
absl::Status WorkspaceTooLarge(std::string_view what);
// INTERNAL, WORKSPACE_NOT_SAVED.
absl::Status WorkspaceNotSaved(std::string_view why);

}  // namespace muster::errors

#endif  // MUSTER_SERVICES_COMMON_ERRORS_WORKSPACES_H_
