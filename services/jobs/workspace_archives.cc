#include "services/jobs/workspace_archives.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "services/common/base/crc32c.h"
#include "services/common/base/log.h"
#include "services/common/base/random_id.h"
#include "services/common/base/sha256.h"
#include "services/common/base/status_macros.h"
#include "services/common/blob/files/files_blob_store.h"
#include "services/common/errors/contents.h"
#include "services/common/errors/results.h"
#include "services/common/errors/workspaces.h"
#include "services/jobs/deleted_workspaces.h"

namespace muster {
namespace {

using sqlite::Connection;

constexpr absl::Duration kIdle = absl::Seconds(30);
constexpr auto kPart = static_cast<int64_t>(kWorkspacePart);

v1::SaveWorkspaceResponse Progress(int64_t offset, bool saved) {
  v1::SaveWorkspaceResponse response;
  response.set_offset(offset);
  response.set_saved(saved);
  return response;
}

absl::Status CheckPart(const v1::SaveWorkspaceRequest& request) {
  const int64_t size = request.report().workspace().size();
  const auto bytes = static_cast<int64_t>(request.data().size());
  const bool inside = request.offset() >= 0 && request.offset() <= size;
  const int64_t left = inside ? size - request.offset() : 0;
  if (!inside || request.offset() % kPart != 0 || (bytes > 0 && bytes != std::min(left, kPart))) {
    return errors::InvalidWorkspace(
        absl::StrCat("a part of ", bytes, " bytes at ", request.offset()));
  }
  if (Crc32c(request.data()) != request.crc32c()) return errors::ContentPartDamaged();
  return absl::OkStatus();
}

bool IsOf(const WorkspaceUploadRow& upload, const v1::WorkspaceReport& report) {
  return upload.job == report.job() && upload.sha256 == report.workspace().sha256() &&
         upload.size == report.workspace().size();
}

bool Holds(const std::optional<WorkspaceRow>& row, const v1::WorkspaceReport& report) {
  return row && row->state != v1::WORKSPACE_STATE_FREE && row->job == report.job() &&
         row->node == report.node();
}

absl::Status Lost(const v1::WorkspaceReport& report, std::string_view why) {
  return errors::WorkspaceLost(report.workspace().workspace(),
                               absl::StrCat("of job ", report.job()), why);
}

// FAILED_PRECONDITION (WORKSPACE_LOST) unless the deployment has the workspace, with this version.
absl::Status CheckHolder(Connection& db, const v1::WorkspaceReport& report) {
  if (const auto deletion =
          FindWorkspaceDeletionOfJob(db, report.workspace().workspace(), report.job())) {
    return Lost(report, absl::StrCat("the workspace was ", DeletionText(*deletion)));
  }
  const auto row = ReadWorkspace(db, report.workspace().workspace());
  if (!Holds(row, report)) return Lost(report, "the deployment does not have it any more");
  if (row->latest != report.workspace().version()) {
    return Lost(report, absl::StrCat("its newest version is ", row->latest));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<WorkspaceArchives>> WorkspaceArchives::Open(
    sqlite::LocalDatabase& database, KeyWrap key_wrap, const std::string& folder,
    const WorkspaceLimits& limits, const Clock& clock, FileOps& ops) {
  ASSIGN_OR_RETURN(auto blobs, OpenFilesBlobStore({.root = folder}, ops));
  std::unique_ptr<WorkspaceArchives> archives(
      new WorkspaceArchives(database, std::move(key_wrap), std::move(blobs), limits, clock));
  RETURN_IF_ERROR(archives->Recover());
  return archives;
}

absl::Status WorkspaceArchives::Recover() {
  std::vector<WorkspaceUploadRow> uploads;
  std::vector<std::string> stored;
  RETURN_IF_ERROR(database_.Read([&](Connection& db) {
    uploads = ReadWorkspaceUploads(db);
    stored = ReadWorkspaceBlobs(db);
    return absl::OkStatus();
  }));
  ASSIGN_OR_RETURN(const auto staged, blobs_->ListStaged());
  for (const std::string& id : staged) {
    if (std::ranges::find(uploads, id, &WorkspaceUploadRow::upload) == uploads.end()) {
      RETURN_IF_ERROR(blobs_->DiscardStaged(id));
    }
  }
  ASSIGN_OR_RETURN(const auto published, blobs_->ListBelow(kWorkspaceBlobs));
  MutexLock lock(change_mutex_);
  published_.insert(published.begin(), published.end());
  for (const std::string& upload : stored) {
    if (published_.contains(WorkspaceBlob(upload))) continue;
    Log(LogLevel::kError, "the archive of a version of a workspace is lost; restore another one",
        {{"archive", upload}});
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> WorkspaceArchives::IsSaved(const v1::WorkspaceReport& report) {
  const v1::JobRecord::Workspace& saved = report.workspace();
  bool done = false;
  bool holds = false;
  RETURN_IF_ERROR(database_.Read([&](Connection& db) {
    // A later workspace of the name may have a version with this number and content.
    if (FindWorkspaceDeletionOfJob(db, saved.workspace(), report.job())) return absl::OkStatus();
    const auto named = ReadWorkspaceVersion(db, saved.workspace(), saved.version());
    done = (named && named->sha256 == saved.sha256()) ||
           ReadVersionOfJob(db, saved.workspace(), report.job(), saved.sha256());
    holds = Holds(ReadWorkspace(db, saved.workspace()), report);
    return absl::OkStatus();
  }));
  if (!done || !holds) return done;
  // The container changed nothing.
  RETURN_IF_ERROR(database_.Write([&](Connection& db) {
    if (CheckHolder(db, report).ok()) ReleaseWorkspace(db, saved.workspace());
    return absl::OkStatus();
  }));
  return true;
}

absl::StatusOr<v1::SaveWorkspaceResponse> WorkspaceArchives::Save(
    const v1::SaveWorkspaceRequest& request) {
  RETURN_IF_ERROR(CheckPart(request));
  const v1::WorkspaceReport& report = request.report();
  ASSIGN_OR_RETURN(const bool saved, IsSaved(report));
  if (saved) return Progress(report.workspace().size(), true);
  RETURN_IF_ERROR(database_.Read([&](Connection& db) { return CheckHolder(db, report); }));
  for (;;) {
    ASSIGN_OR_RETURN(const auto session, FindSession(report.workspace().workspace()));
    MutexLock lock(session->mutex);
    if (session->closed) continue;
    auto response = SaveIn(*session, request);
    // A session without open files would take one of their places.
    if (!response.ok() || response->saved()) Close(*session);
    return response;
  }
}

absl::StatusOr<std::shared_ptr<WorkspaceArchives::Session>> WorkspaceArchives::FindSession(
    const std::string& name) {
  MutexLock lock(mutex_);
  if (const auto found = sessions_.find(name); found != sessions_.end()) return found->second;
  if (sessions_.size() >= limits_.max_open) {
    return errors::TooManyUploads(static_cast<int64_t>(limits_.max_open));
  }
  return sessions_.emplace(name, std::make_shared<Session>(name)).first->second;
}

void WorkspaceArchives::Close(Session& session) {
  session.staged.reset();
  session.closed = true;
  MutexLock lock(mutex_);
  sessions_.erase(session.name);
}

absl::StatusOr<v1::SaveWorkspaceResponse> WorkspaceArchives::SaveIn(
    Session& session, const v1::SaveWorkspaceRequest& request) {
  const v1::WorkspaceReport& report = request.report();
  session.used_at = clock_.MonotonicNow();
  if (session.staged != nullptr && !IsOf(session.row, report)) session.staged.reset();
  if (session.staged == nullptr) {
    ASSIGN_OR_RETURN(const bool published, OpenStaged(session, report));
    if (published) return Progress(report.workspace().size(), true);
  }
  RETURN_IF_ERROR(Append(session, request));
  if (session.staged->written() < SealedSize(session.row.size)) {
    const int64_t parts = session.staged->written() / SealedSize(kPart);
    return Progress(parts * kPart, false);
  }
  RETURN_IF_ERROR(Complete(session, report));
  return Progress(report.workspace().size(), true);
}

absl::StatusOr<WorkspaceUploadRow> WorkspaceArchives::Admit(const v1::WorkspaceReport& report) {
  const v1::JobRecord::Workspace& saved = report.workspace();
  WorkspaceUploadRow upload = {.name = saved.workspace(),
                               .upload = RandomHex(16),
                               .job = report.job(),
                               .sha256 = saved.sha256(),
                               .size = saved.size()};
  std::optional<WorkspaceUploadRow> before;
  RETURN_IF_ERROR(database_.Read([&](Connection& db) {
    before = ReadWorkspaceUpload(db, saved.workspace());
    return absl::OkStatus();
  }));
  if (before && IsOf(*before, report)) return *before;
  if (before) RETURN_IF_ERROR(Discard(*before));
  ASSIGN_OR_RETURN(const auto wrapped, reader_.WrapNewKey(saved.workspace()));
  RETURN_IF_ERROR(database_.Write([&](Connection& db) -> absl::Status {
    RETURN_IF_ERROR(CheckHolder(db, report));
    if (upload.size > limits_.quota - ReadWorkspaceUsage(db)) {
      return errors::WorkspaceQuota(limits_.quota);
    }
    if (ReadWorkspace(db, upload.name)->data_key.empty()) SetDataKey(db, upload.name, wrapped);
    WriteWorkspaceUpload(db, upload);
    return absl::OkStatus();
  }));
  return upload;
}

absl::StatusOr<bool> WorkspaceArchives::OpenStaged(Session& session,
                                                   const v1::WorkspaceReport& report) {
  ASSIGN_OR_RETURN(session.row, Admit(report));
  ASSIGN_OR_RETURN(session.cipher,
                   reader_.CipherOf(session.name, session.row.upload, session.row.size));
  session.hash = UploadHash();
  const std::string& upload = session.row.upload;
  auto staged = blobs_->Resume(upload);
  if (absl::IsNotFound(staged.status())) {
    const auto size = blobs_->Size(WorkspaceBlob(upload));
    if (size.ok() && *size == SealedSize(session.row.size)) {
      // A crash, or a failure of the database, came after the publication of verified bytes.
      MutexLock lock(change_mutex_);
      published_.insert(WorkspaceBlob(upload));
      RETURN_IF_ERROR(Commit(session.row, report));
      return true;
    }
    if (!size.ok() && !absl::IsNotFound(size.status())) return size.status();
    staged = blobs_->Stage(upload, SealedSize(session.row.size));
  }
  if (!staged.ok()) return staged.status();
  // Each part is one append, so a resume keeps whole parts.
  const int64_t written = (*staged)->written();
  if (written != SealedSize(session.row.size) && written % SealedSize(kPart) != 0) {
    RETURN_IF_ERROR((*staged)->Discard());
    RETURN_IF_ERROR(Discard(session.row));
    return errors::WorkspaceDigestMismatch(session.name);
  }
  session.staged = *std::move(staged);
  return false;
}

absl::Status WorkspaceArchives::Append(Session& session, const v1::SaveWorkspaceRequest& request) {
  StagedBlob& staged = *session.staged;
  const bool is_next =
      staged.written() == SealedSize(request.offset()) && request.offset() < session.row.size;
  if (!is_next || request.data().empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::string sealed,
                   session.cipher->Seal(request.offset() / kPart, request.data()));
  RETURN_IF_ERROR(staged.Append(sealed, Crc32c(sealed)));
  if (session.hash.size() == request.offset()) session.hash.Update(request.data());
  return absl::OkStatus();
}

absl::Status WorkspaceArchives::Verify(Session& session) {
  const int64_t size = session.row.size;
  absl::Status read;
  if (session.hash.size() < size) {
    const int64_t from = session.hash.size();
    ASSIGN_OR_RETURN(const auto sealed, session.staged->Read(SealedSize(from)));
    SealedArchive archive(*session.cipher, *sealed, from / kPart, size);
    read = session.hash.Read(archive, size, nullptr);
  }
  if (!read.ok() && !absl::IsDataLoss(read)) return read;
  if (read.ok() && session.hash.Finish() == session.row.sha256) return session.staged->Sync();
  RETURN_IF_ERROR(session.staged->Discard());
  RETURN_IF_ERROR(Discard(session.row));
  return errors::WorkspaceDigestMismatch(session.name);
}

absl::Status WorkspaceArchives::Complete(Session& session, const v1::WorkspaceReport& report) {
  RETURN_IF_ERROR(Verify(session));
  MutexLock lock(change_mutex_);
  published_.insert(WorkspaceBlob(session.row.upload));
  RETURN_IF_ERROR(session.staged->Publish(WorkspaceBlob(session.row.upload)));
  return Commit(session.row, report);
}

absl::Status WorkspaceArchives::Commit(const WorkspaceUploadRow& upload,
                                       const v1::WorkspaceReport& report) {
  RETURN_IF_ERROR(blobs_->SyncName(WorkspaceBlob(upload.upload)));
  return database_.Write([&](Connection& db) -> absl::Status {
    RETURN_IF_ERROR(CheckHolder(db, report));
    const auto row = ReadWorkspace(db, upload.name);
    WorkspaceVersionRow version;
    version.version = row->latest + 1;
    version.upload = upload.upload;
    version.sha256 = upload.sha256;
    version.size = upload.size;
    version.deployment = row->deployment;
    version.job = report.job();
    version.node = report.node();
    version.created_at = clock_.Now();
    version.omitted = report.workspace().omitted();
    AddWorkspaceVersion(db, upload.name, version);
    DeleteWorkspaceUpload(db, upload);
    ReleaseWorkspace(db, upload.name);
    return absl::OkStatus();
  });
}

absl::Status WorkspaceArchives::Discard(const WorkspaceUploadRow& upload) {
  RETURN_IF_ERROR(database_.Write([&](Connection& db) {
    DeleteWorkspaceUpload(db, upload);
    return absl::OkStatus();
  }));
  return blobs_->DiscardStaged(upload.upload);
}

void WorkspaceArchives::CloseIdle() {
  std::vector<std::shared_ptr<Session>> sessions;
  {
    MutexLock lock(mutex_);
    for (const auto& [name, session] : sessions_) sessions.push_back(session);
  }
  for (const auto& session : sessions) {
    if (!session->mutex.TryLock()) continue;  // a call uses it
    if (!session->closed && clock_.MonotonicNow() - session->used_at >= kIdle) Close(*session);
    session->mutex.Unlock();
  }
}

// Its session keeps calls away that would resume it.
absl::Status WorkspaceArchives::RemoveStale(const WorkspaceUploadRow& upload) {
  const auto session = FindSession(upload.name);
  if (!session.ok()) return absl::OkStatus();                 // the next sweep removes it
  if (!(*session)->mutex.TryLock()) return absl::OkStatus();  // a call uses it
  absl::Status status;
  if (!(*session)->closed && (*session)->staged == nullptr) {
    status = Discard(upload);
    Close(**session);
  }
  (*session)->mutex.Unlock();
  return status;
}

absl::Status WorkspaceArchives::RemoveUnused() {
  MutexLock lock(change_mutex_);
  std::set<std::string> wanted;
  RETURN_IF_ERROR(database_.Read([&](Connection& db) {
    for (const std::string& upload : ReadWorkspaceBlobs(db)) wanted.insert(WorkspaceBlob(upload));
    for (const auto& upload : ReadWorkspaceUploads(db)) wanted.insert(WorkspaceBlob(upload.upload));
    return absl::OkStatus();
  }));
  for (auto it = published_.begin(); it != published_.end();) {
    if (wanted.contains(*it)) {
      ++it;
      continue;
    }
    RETURN_IF_ERROR(blobs_->Remove(*it));
    it = published_.erase(it);
  }
  return absl::OkStatus();
}

void WorkspaceArchives::Sweep() {
  CloseIdle();
  std::vector<WorkspaceUploadRow> stale;
  absl::Status failure = database_.Read([&](Connection& db) {
    for (const WorkspaceUploadRow& upload : ReadWorkspaceUploads(db)) {
      const auto row = ReadWorkspace(db, upload.name);
      if (!row || row->job != upload.job) stale.push_back(upload);
    }
    return absl::OkStatus();
  });
  for (const WorkspaceUploadRow& upload : stale) failure.Update(RemoveStale(upload));
  failure.Update(RemoveUnused());
  if (!failure.ok()) {
    LogLimited(LogLevel::kError, "archives of workspaces that are not needed cannot be removed", "",
               {{"error", failure}});
  }
}

}  // namespace muster
