#include "services/agent/jobs/job_workspace.h"

#include "absl/strings/str_cat.h"
#include "services/agent/jobs/deployment_files.h"
#include "services/agent/jobs/file_modes.h"
#include "services/agent/jobs/workspace_folder.h"
#include "services/common/base/error.h"
#include "services/common/base/file_ops.h"
#include "services/common/base/log.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/errors/workspaces.h"

namespace muster {
absl::Status JobWorkspace::Provide(const ContentFetcher& fetcher) const {
  if (outbox_ == nullptr) {
    return errors::WorkspaceUnavailable("this agent has no way to the jobs service");
  }
  RETURN_IF_ERROR(outbox_->CheckRoom());
  const absl::Status filled = Fill(fetcher);
  if (filled.ok() || ReasonOf(filled) == "WORKSPACE_UNAVAILABLE") return filled;
  return errors::WorkspaceUnavailable(ToStd(filled.message()));
}

absl::Status JobWorkspace::Fill(const ContentFetcher& fetcher) const {
  RETURN_IF_ERROR(state_.MarkUnsaved());
  RETURN_IF_ERROR(MakeFolderWithMode(state_.folder() + "/workspace", kAnyUserEnters));
  if (named_.version() == 0) return MakeFolderWithMode(state_.workspace(), kAnyUserWrites);
  const std::string archive = state_.workspace() + ".archive";
  v1::Command::File file;
  file.set_path(absl::StrCat("workspace ", named_.workspace()));
  file.set_sha256(named_.sha256());
  file.set_size(named_.size());
  absl::Status status = fetcher.Fetch(archive, file);
  if (status.ok()) status = UnpackWorkspace(PosixFileOps(), archive, state_.workspace());
  const absl::Status removed = PosixFileOps().Remove(archive);
  if (status.ok() || !absl::IsNotFound(removed)) status.Update(removed);
  return status;
}

absl::StatusOr<v1::JobRecord> JobWorkspace::Save(const std::function<bool()>& stopped) const {
  if (outbox_ == nullptr) return errors::WorkspaceNotSaved("this agent keeps no workspaces");
  v1::JobRecord record;
  ASSIGN_OR_RETURN(*record.mutable_workspace(),
                   outbox_->Save(job_, named_, state_.workspace(), stopped));
  return record;
}

void JobWorkspace::GiveUp() const {
  const absl::Status refused = outbox_->Refuse(job_);
  if (refused.ok()) return;
  Log(LogLevel::kError, "a workspace that was not saved cannot be moved away",
      {{"job", job_}, {"error", refused}});
}

void JobWorkspace::SetSaved() const {
  const absl::Status status = state_.MarkSaved();
  if (status.ok()) return;
  Log(LogLevel::kWarning, "the folder of a saved workspace stays for a day",
      {{"job", job_}, {"folder", state_.workspace()}, {"error", status}});
}

bool IsNeverSaved(const absl::Status& failure) {
  const std::string reason = ReasonOf(failure);
  return reason == "WORKSPACE_TOO_LARGE" || reason == "WORKSPACE_NOT_SAVED";
}

}  // namespace muster
