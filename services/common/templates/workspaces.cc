#include "services/common/templates/workspaces.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "services/common/base/names.h"
#include "services/common/base/sha256.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/workspaces.h"

namespace muster {
namespace {

// More versions than a workspace can get.
constexpr int64_t kMaxVersion = int64_t{1} << 50;
constexpr int64_t kMaxOmitted = int64_t{1} << 50;

absl::Status CheckNameAndVersion(const std::string& name, int64_t version) {
  if (!ValidateName("workspace", name).ok()) {
    return errors::InvalidWorkspace(
        absl::StrCat("\"", absl::Utf8SafeCEscape(name.substr(0, 300)),
                     "\" is no name: 1 to 253 of [A-Za-z0-9._-], and no dot at the beginning"));
  }
  if (version >= 0 && version <= kMaxVersion) return absl::OkStatus();
  return errors::InvalidWorkspace(absl::StrCat("the version ", version));
}

absl::Status CheckArchive(const std::string& sha256, int64_t size) {
  if (sha256.size() != kSha256Size) {
    return errors::InvalidWorkspace(absl::StrCat("a SHA-256 of ", sha256.size(), " bytes"));
  }
  if (size >= 1 && size <= kMaxWorkspaceArchive) return absl::OkStatus();
  return errors::InvalidWorkspace(
      absl::StrCat("an archive of ", size, " bytes, not 1 to ", kMaxWorkspaceArchive));
}

}  // namespace

absl::Status CheckWorkspace(const v1::Command::WorkspaceReference& workspace) {
  RETURN_IF_ERROR(CheckNameAndVersion(workspace.workspace(), workspace.version()));
  if (workspace.version() > 0) return CheckArchive(workspace.sha256(), workspace.size());
  if (workspace.sha256().empty() && workspace.size() == 0) return absl::OkStatus();
  return errors::InvalidWorkspace("version 0 has no content");
}

absl::Status CheckWorkspaceTarget(const v1::Command& command) {
  if (!command.container().deployment().has_workspace()) return absl::OkStatus();
  if (!command.targets().all() && command.targets().count() == 1) return absl::OkStatus();
  return errors::InvalidWorkspace("a deployment with a workspace runs on exactly one node");
}

absl::Status CheckSavedWorkspace(const v1::JobRecord::Workspace& workspace) {
  RETURN_IF_ERROR(CheckNameAndVersion(workspace.workspace(), workspace.version()));
  RETURN_IF_ERROR(CheckArchive(workspace.sha256(), workspace.size()));
  if (workspace.omitted() >= 0 && workspace.omitted() <= kMaxOmitted) return absl::OkStatus();
  return errors::InvalidWorkspace("the number of omitted entries is out of range");
}

std::string WorkspaceText(const v1::JobRecord::Workspace& workspace) {
  return absl::StrCat(workspace.workspace(), "\n", workspace.version(), "\n",
                      ToHex(workspace.sha256()), "\n", workspace.size(), "\n", workspace.omitted());
}

}  // namespace muster
