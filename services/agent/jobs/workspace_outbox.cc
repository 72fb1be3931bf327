#include "services/agent/jobs/workspace_outbox.h"

#include <algorithm>
#include <functional>

#include "absl/strings/str_cat.h"
#include "services/agent/jobs/workspace_folder.h"
#include "services/common/base/log.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/errors/workspaces.h"
#include "services/common/identity/signed_command.h"
#include "services/common/templates/workspaces.h"

namespace muster {
namespace {

constexpr char kPartial[] = ".partial";
constexpr int64_t kMaxReport = 4096;

std::string ArchiveIn(const std::string& folder) { return folder + "/archive"; }
std::string ReportIn(const std::string& folder) { return folder + "/report"; }
std::string MarkIn(const std::string& folder) { return folder + "/refused"; }

}  // namespace

WorkspaceOutbox::WorkspaceOutbox(FileOps& ops, const std::string& node_folder, std::string node,
                                 const Clock& clock)
    : ops_(ops),
      folder_(node_folder + "/workspaces"),
      refused_(node_folder + "/workspaces-refused"),
      node_(std::move(node)),
      clock_(clock) {}

absl::StatusOr<std::unique_ptr<WorkspaceOutbox>> WorkspaceOutbox::Open(
    FileOps& ops, const std::string& node_folder, std::string node, const Clock& clock) {
  std::unique_ptr<WorkspaceOutbox> outbox(
      new WorkspaceOutbox(ops, node_folder, std::move(node), clock));
  RETURN_IF_ERROR(outbox->Recover());
  return outbox;
}

std::string WorkspaceOutbox::PathOf(const std::string& job) const {
  return absl::StrCat(folder_, "/", job);
}

absl::Status WorkspaceOutbox::Recover() {
  RETURN_IF_ERROR(MakeFolders(ops_, folder_));
  RETURN_IF_ERROR(MakeFolders(ops_, refused_));
  ASSIGN_OR_RETURN(const auto entries, ops_.List(folder_));
  MutexLock lock(mutex_);
  for (const FolderEntry& entry : entries) {
    if (entry.type != FileType::kFolder) continue;
    if (entry.name.ends_with(kPartial)) {
      const absl::Status removed = RemoveTree(ops_, PathOf(entry.name));
      if (removed.ok()) continue;
      Log(LogLevel::kWarning, "a part of a workspace cannot be removed; remove it by hand",
          {{"folder", PathOf(entry.name)}, {"error", removed}});
    } else if (IsJobId(entry.name)) {
      const auto info = ops_.Stat(ArchiveIn(PathOf(entry.name)));
      waiting_[entry.name] = info.ok() ? info->size : 0;
    }
  }
  return absl::OkStatus();
}

absl::Status WorkspaceOutbox::CheckRoom() {
  MutexLock lock(mutex_);
  int64_t bytes = 0;
  for (const auto& [job, size] : waiting_) bytes += size;
  if (bytes < kMaxWaitingWorkspaces) return absl::OkStatus();
  return errors::WorkspaceUnavailable(absl::StrCat("this node has saved workspaces of ", bytes,
                                                   " bytes that the jobs service does not have"));
}

absl::StatusOr<v1::JobRecord::Workspace> WorkspaceOutbox::Save(
    const std::string& job, const v1::Command::WorkspaceReference& named, const std::string& folder,
    const std::function<bool()>& stopped) {
  bool waits = false;
  {
    MutexLock lock(mutex_);
    waits = waiting_.contains(job);
  }
  // It has its name already if an earlier call could not make that durable.
  if (!waits && !ops_.Stat(PathOf(job)).ok()) {
    const absl::Status packed = Pack(job, named, folder, stopped);
    if (!packed.ok()) {  // it may have filled the disk
      RemoveTree(ops_, PathOf(job) + kPartial).IgnoreError();
      return packed;
    }
  }
  if (!waits) RETURN_IF_ERROR(ops_.SyncFolder(folder_));
  ASSIGN_OR_RETURN(auto report, Report(job));
  if (!waits) {
    MutexLock lock(mutex_);
    waiting_[job] = report.workspace().size();
    changed_.NotifyAll();
  }
  return std::move(*report.mutable_workspace());
}

absl::Status WorkspaceOutbox::Pack(const std::string& job,
                                   const v1::Command::WorkspaceReference& named,
                                   const std::string& folder,
                                   const std::function<bool()>& stopped) {
  const std::string partial = PathOf(job) + kPartial;
  RETURN_IF_ERROR(RemoveTree(ops_, partial));
  RETURN_IF_ERROR(ops_.MakeFolder(partial));
  ASSIGN_OR_RETURN(const WorkspaceArchive archive,
                   PackWorkspace(ops_, folder, ArchiveIn(partial), stopped));
  v1::WorkspaceReport report;
  report.set_job(job);
  report.set_node(node_);
  v1::JobRecord::Workspace& saved = *report.mutable_workspace();
  saved.set_workspace(named.workspace());
  saved.set_version(named.version());
  saved.set_sha256(archive.sha256);
  saved.set_size(archive.size);
  saved.set_omitted(archive.omitted);
  RETURN_IF_ERROR(WriteFileDurably(ops_, ReportIn(partial), report.SerializeAsString()));
  RETURN_IF_ERROR(ops_.SyncFolder(partial));
  return ops_.Rename(partial, PathOf(job));
}

std::vector<std::string> WorkspaceOutbox::Waiting() {
  MutexLock lock(mutex_);
  std::vector<std::string> jobs;
  for (const auto& [job, size] : waiting_) jobs.push_back(job);
  return jobs;
}

bool WorkspaceOutbox::AwaitWaiting(absl::Duration limit) {
  MutexLock lock(mutex_);
  changed_.WaitFor(mutex_, limit, [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return woken_ || !waiting_.empty();
  });
  woken_ = false;
  return !waiting_.empty();
}

void WorkspaceOutbox::Wake() {
  {
    MutexLock lock(mutex_);
    woken_ = true;
  }
  changed_.NotifyAll();
}

absl::StatusOr<v1::WorkspaceReport> WorkspaceOutbox::Report(const std::string& job) {
  const auto text = ReadSmallFile(ops_, ReportIn(PathOf(job)), kMaxReport);
  const auto archive = ops_.Stat(ArchiveIn(PathOf(job)));
  for (const absl::Status& status : {text.status(), archive.status()}) {
    if (absl::IsNotFound(status) || absl::IsOutOfRange(status)) {
      return errors::WorkspaceNotSaved(ToStd(status.message()));
    }
    RETURN_IF_ERROR(status);
  }
  v1::WorkspaceReport report;
  if (report.ParseFromString(*text) && report.job() == job &&
      report.workspace().size() == archive->size) {
    return report;
  }
  return errors::WorkspaceNotSaved(absl::StrCat(PathOf(job), " is damaged"));
}

absl::StatusOr<std::string> WorkspaceOutbox::ReadPart(const std::string& job, int64_t offset) {
  ASSIGN_OR_RETURN(const auto file, ops_.Open(ArchiveIn(PathOf(job)), OpenMode::kRead));
  std::string part(kWorkspacePart, '\0');
  ASSIGN_OR_RETURN(const size_t size, file->ReadAt(part, offset));
  part.resize(size);
  return part;
}

absl::Status WorkspaceOutbox::Remove(const std::string& job) {
  // A crash in between leaves a folder of the name, which is removed at the next start.
  const std::string partial = PathOf(job) + kPartial;
  RETURN_IF_ERROR(RemoveTree(ops_, partial));
  RETURN_IF_ERROR(ops_.Rename(PathOf(job), partial));
  {
    MutexLock lock(mutex_);
    waiting_.erase(job);
  }
  return RemoveTree(ops_, partial);
}

absl::Status WorkspaceOutbox::Refuse(const std::string& job) {
  const std::string refused = absl::StrCat(refused_, "/", job);
  RETURN_IF_ERROR(RemoveTree(ops_, refused));
  const absl::Status moved = ops_.Rename(PathOf(job), refused);
  if (!moved.ok() && !absl::IsNotFound(moved)) return moved;
  {
    MutexLock lock(mutex_);
    waiting_.erase(job);
  }
  if (!moved.ok()) return absl::OkStatus();  // it was removed by hand
  RETURN_IF_ERROR(ops_.SyncFolder(refused_));
  // Its time is that of the refusal.
  RETURN_IF_ERROR(WriteFileDurably(ops_, MarkIn(refused), ""));
  ForgetRefused();
  return absl::OkStatus();
}

std::vector<WorkspaceOutbox::Refused> WorkspaceOutbox::ListRefused() {
  std::vector<Refused> refused;
  const auto entries = ops_.List(refused_);
  if (!entries.ok()) return refused;
  for (const FolderEntry& entry : *entries) {
    const std::string path = absl::StrCat(refused_, "/", entry.name);
    auto since = ops_.Stat(MarkIn(path));
    if (!since.ok()) since = ops_.Stat(path);  // a crash came before the mark
    if (!since.ok()) continue;
    const auto archive = ops_.Stat(ArchiveIn(path));
    refused.push_back({since->modified_at, path, archive.ok() ? archive->size : 0});
  }
  std::ranges::sort(refused, std::greater(), &Refused::at);
  return refused;
}

void WorkspaceOutbox::ForgetRefused() {
  int64_t bytes = 0;
  for (const Refused& refused : ListRefused()) {
    bytes += refused.bytes;
    const absl::Duration age = clock_.Now() - absl::FromUnixMicros(refused.at);
    if (age < kRefusedWorkspaceKept && bytes <= kMaxRefusedWorkspaces) continue;
    const absl::Status removed = RemoveTree(ops_, refused.path);
    if (!removed.ok()) {
      LogLimited(LogLevel::kWarning, "a refused workspace cannot be removed; remove it by hand", "",
                 {{"folder", refused.path}, {"error", removed}});
    } else if (age < kRefusedWorkspaceKept) {
      Log(LogLevel::kWarning, "a refused workspace is removed, because there are too many bytes",
          {{"folder", refused.path}, {"limit", kMaxRefusedWorkspaces}});
    }
  }
}

}  // namespace muster
