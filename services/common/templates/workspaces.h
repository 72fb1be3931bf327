// The workspace of a deployment, in its command and in the record of its node.
#ifndef MUSTER_SERVICES_COMMON_TEMPLATES_WORKSPACES_H_
#define MUSTER_SERVICES_COMMON_TEMPLATES_WORKSPACES_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "muster/v1/jobs.pb.h"

namespace muster {

// The most bytes of the files of a workspace.
inline constexpr int64_t kMaxWorkspace = int64_t{1} << 30;
// The largest archive of a workspace: its headers add to the files.
inline constexpr int64_t kMaxWorkspaceArchive = kMaxWorkspace + (int64_t{64} << 20);
// The bytes of an archive in one call of SaveWorkspace, unless it is the last one.
inline constexpr size_t kWorkspacePart = size_t{256} << 10;

// Checks the workspace of a command: its name, and a digest and a size unless it is empty.
// INVALID_ARGUMENT (INVALID_WORKSPACE).
absl::Status CheckWorkspace(const v1::Command::WorkspaceReference& workspace);

// Checks that a command with a workspace has exactly one target, which it names. INVALID_ARGUMENT
// (INVALID_WORKSPACE).
absl::Status CheckWorkspaceTarget(const v1::Command& command);

// Checks the workspace that a node saves, in the same way.
absl::Status CheckSavedWorkspace(const v1::JobRecord::Workspace& workspace);

// Returns the text of a saved workspace that its node signs (RecordsSignature of jobs.proto,
// WorkspaceReport of workspaces.proto), without a line break at its end.
std::string WorkspaceText(const v1::JobRecord::Workspace& workspace);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_TEMPLATES_WORKSPACES_H_
