#include "services/jobs/content_store.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "services/common/base/crc32c.h"
#include "services/common/base/error.h"
#include "services/common/base/log.h"
#include "services/common/base/sha256.h"
#include "services/common/base/status_macros.h"
#include "services/common/blob/files/files_blob_store.h"
#include "services/common/errors/contents.h"
#include "services/common/errors/results.h"

namespace muster {
namespace {

using sqlite::Connection;

constexpr char kFolder[] = "contents/";
constexpr size_t kSweptAtOnce = 100;
constexpr absl::Duration kIdle = absl::Seconds(30);

std::string BlobOf(const std::string& sha256) {
  return absl::StrCat(kFolder, absl::BytesToHexString(sha256));
}

// Each operator has a separate upload: another one cannot spoil it.
std::string UploadIdOf(const ContentRow& content) {
  return ToHex(DigestBytes(Sha256::Of(absl::StrCat(content.created_by, "\n", content.sha256))));
}

}  // namespace

absl::StatusOr<std::unique_ptr<ContentStore>> ContentStore::Open(sqlite::LocalDatabase& database,
                                                                 const std::string& folder,
                                                                 const ContentLimits& limits,
                                                                 const Clock& clock, FileOps& ops) {
  ASSIGN_OR_RETURN(auto blobs, OpenFilesBlobStore({.root = folder}, ops));
  std::unique_ptr<ContentStore> store(new ContentStore(database, std::move(blobs), limits, clock));
  RETURN_IF_ERROR(store->Recover());
  return store;
}

absl::Status ContentStore::Recover() {
  std::vector<ContentRow> contents;
  std::vector<ContentUploadRow> uploads;
  RETURN_IF_ERROR(database_.Read([&](Connection& db) {
    contents = ReadContents(db);
    uploads = ReadUploads(db);
    return absl::OkStatus();
  }));
  ASSIGN_OR_RETURN(const auto staged_list, blobs_->ListStaged());
  std::set<std::string> staged(staged_list.begin(), staged_list.end());
  std::set<std::string> wanted;
  for (const ContentRow& content : contents) wanted.insert(BlobOf(content.sha256));
  for (const ContentUploadRow& upload : uploads) {
    if (staged.erase(upload.upload) > 0) continue;
    ASSIGN_OR_RETURN(const bool published, IsPublished(upload.content));
    if (!published) {
      RETURN_IF_ERROR(RemoveUpload(upload.upload));
      continue;
    }
    RETURN_IF_ERROR(MakeStored(upload));
    wanted.insert(BlobOf(upload.content.sha256));
  }
  for (const std::string& id : staged) RETURN_IF_ERROR(blobs_->DiscardStaged(id));
  ASSIGN_OR_RETURN(const auto published, blobs_->ListBelow(kFolder));
  std::set<std::string> present(published.begin(), published.end());
  for (const std::string& name : published) {
    if (!wanted.contains(name)) RETURN_IF_ERROR(blobs_->Remove(name));
  }
  for (const ContentRow& content : contents) {
    if (present.contains(BlobOf(content.sha256))) continue;
    Log(LogLevel::kError, "the bytes of a content are lost; upload it again",
        {{"sha256", ToHex(content.sha256)}});
    RETURN_IF_ERROR(database_.Write([&](Connection& db) {
      DeleteContent(db, content.sha256);
      return absl::OkStatus();
    }));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> ContentStore::FindMissing(
    const std::vector<std::string>& digests) {
  std::vector<std::string> missing;
  RETURN_IF_ERROR(database_.Write([&](Connection& db) {
    missing.clear();
    for (const std::string& digest : digests) {
      if (!KeepContent(db, digest, clock_.Now() + kContentKept)) missing.push_back(digest);
    }
    return absl::OkStatus();
  }));
  return missing;
}

absl::Status ContentStore::CheckPart(const ContentPart& part) const {
  if (part.content.size < 1 || part.content.size > limits_.max_size) {
    return errors::InvalidContent(
        absl::StrCat("the size ", part.content.size, " is not 1 to ", limits_.max_size));
  }
  const auto bytes = static_cast<int64_t>(part.data.size());
  if (part.data.size() > kMaxContentPart || part.offset < 0 ||
      part.offset > part.content.size - bytes) {
    return errors::InvalidContent(
        absl::StrCat("a part of ", bytes, " bytes at ", part.offset, " of ", part.content.size));
  }
  if (Crc32c(part.data) != part.crc32c) return errors::ContentPartDamaged();
  return absl::OkStatus();
}

absl::StatusOr<ContentProgress> ContentStore::Upload(const ContentPart& part) {
  RETURN_IF_ERROR(CheckPart(part));
  std::optional<ContentRow> stored;
  RETURN_IF_ERROR(database_.Read([&](Connection& db) {
    stored = ReadContent(db, part.content.sha256);
    return absl::OkStatus();
  }));
  if (stored) {
    if (stored->size != part.content.size) {
      return errors::InvalidContent(absl::StrCat("the content has ", stored->size, " bytes"));
    }
    ASSIGN_OR_RETURN(const auto missing, FindMissing({part.content.sha256}));
    // Otherwise it was removed meanwhile.
    if (missing.empty()) return ContentProgress{stored->size, true};
  }
  const ContentUploadRow row = {UploadIdOf(part.content), part.content};
  for (;;) {
    ASSIGN_OR_RETURN(const auto session, FindSession(row));
    MutexLock lock(session->mutex);
    if (!session->closed) return UploadTo(*session, part);
  }
}

absl::StatusOr<std::shared_ptr<ContentStore::Session>> ContentStore::FindSession(
    const ContentUploadRow& row) {
  MutexLock lock(mutex_);
  if (const auto found = sessions_.find(row.upload); found != sessions_.end()) {
    return found->second;
  }
  if (sessions_.size() >= limits_.max_open) {
    return errors::TooManyUploads(static_cast<int64_t>(limits_.max_open));
  }
  const std::string& creator = row.content.created_by;
  const auto own = static_cast<size_t>(std::ranges::count_if(sessions_, [&](const auto& session) {
    return session.second->row.content.created_by == creator;
  }));
  if (own >= limits_.max_open / 2) {
    return errors::TooManyUploadsOf(creator, static_cast<int64_t>(limits_.max_open / 2));
  }
  return sessions_.emplace(row.upload, std::make_shared<Session>(row)).first->second;
}

// Stores the upload if it is new; otherwise it is kept for a further day.
absl::Status ContentStore::Admit(const ContentUploadRow& row) {
  return database_.Write([&](Connection& db) -> absl::Status {
    if (const auto open = ReadUpload(db, row.upload); open) {
      if (open->size != row.content.size) {
        return errors::InvalidContent(
            absl::StrCat("its upload was begun with ", open->size, " bytes"));
      }
    } else {
      const ContentUsage usage = ReadContentUsage(db, row.content.created_by);
      if (usage.count >= limits_.max_contents) {
        return errors::ContentQuota(absl::StrCat(limits_.max_contents, " contents"),
                                    "contents.max_count");
      }
      if (row.content.size > limits_.quota - usage.bytes) {
        return errors::ContentQuota(absl::StrCat(limits_.quota, " bytes"), "contents.quota");
      }
      if (row.content.size > limits_.quota / 2 - usage.bytes_of_creator) {
        return errors::ContentQuota(
            absl::StrCat(limits_.quota / 2, " bytes of ", row.content.created_by),
            "contents.quota");
      }
    }
    WriteUpload(db, row, clock_.Now() + kContentKept);
    return absl::OkStatus();
  });
}

absl::Status ContentStore::OpenStaged(Session& session) {
  const ContentUploadRow& row = session.row;
  RETURN_IF_ERROR(Admit(row));
  auto staged = blobs_->Resume(row.upload);
  if (absl::IsNotFound(staged.status())) {
    staged = blobs_->Stage(row.upload, row.content.size);
    // It takes no part of the quota then.
    if (!staged.ok()) RemoveUpload(row.upload).IgnoreError();
  }
  if (!staged.ok()) return staged.status();
  session.staged = *std::move(staged);
  return absl::OkStatus();
}

// A session without open files would take one of their places: it is closed after each failure.
absl::StatusOr<ContentProgress> ContentStore::UploadTo(Session& session, const ContentPart& part) {
  session.used_at = clock_.MonotonicNow();
  if (session.row.content.size != part.content.size) {
    return errors::InvalidContent(
        absl::StrCat("its upload was begun with ", session.row.content.size, " bytes"));
  }
  if (session.staged == nullptr) {
    const auto stored = StorePublished(session.row);
    const absl::Status opened = stored.ok() && !*stored ? OpenStaged(session) : stored.status();
    if (!opened.ok() || *stored) Close(session);
    RETURN_IF_ERROR(opened);
    if (*stored) return ContentProgress{part.content.size, true};
  }
  StagedBlob& staged = *session.staged;
  if (part.offset == staged.written() && !part.data.empty()) {
    if (absl::Status s = staged.Append(part.data, part.crc32c); !s.ok()) {
      Close(session);  // the next call resumes the accepted bytes
      return s;
    }
    if (session.hash.size() == part.offset) session.hash.Update(part.data);
  }
  if (staged.written() == part.content.size) return Complete(session);
  return ContentProgress{staged.written(), false};
}

absl::StatusOr<ContentProgress> ContentStore::Complete(Session& session) {
  const ContentRow& content = session.row.content;
  const auto verify = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(session.mutex) -> absl::Status {
    ASSIGN_OR_RETURN(const auto source, session.staged->Read(session.hash.size()));
    RETURN_IF_ERROR(session.hash.Read(*source, content.size, nullptr));
    if (session.hash.Finish() == content.sha256) return session.staged->Sync();
    RETURN_IF_ERROR(session.staged->Discard());
    RETURN_IF_ERROR(RemoveUpload(session.row.upload));
    return errors::ContentDigestMismatch(ToHex(content.sha256));
  };
  absl::Status status = verify();
  if (status.ok()) {
    MutexLock lock(change_mutex_);
    status = session.staged->Publish(BlobOf(content.sha256));
    if (status.ok()) status = MakeStored(session.row);
  }
  Close(session);
  if (!status.ok()) return status;
  return ContentProgress{content.size, true};
}

void ContentStore::Close(Session& session) {
  session.staged.reset();
  session.closed = true;
  MutexLock lock(mutex_);
  sessions_.erase(session.row.upload);
}

// Only verified bytes are published.
absl::StatusOr<bool> ContentStore::IsPublished(const ContentRow& content) {
  const auto size = blobs_->Size(BlobOf(content.sha256));
  if (absl::IsNotFound(size.status())) return false;
  if (!size.ok()) return size.status();
  return *size == content.size;
}

// A crash, or a failure of the database, came after the publication.
absl::StatusOr<bool> ContentStore::StorePublished(const ContentUploadRow& row) {
  MutexLock lock(change_mutex_);
  ASSIGN_OR_RETURN(const bool published, IsPublished(row.content));
  if (published) RETURN_IF_ERROR(MakeStored(row));
  return published;
}

absl::Status ContentStore::MakeStored(const ContentUploadRow& row) {
  RETURN_IF_ERROR(blobs_->SyncName(BlobOf(row.content.sha256)));
  return database_.Write([&](Connection& db) {
    WriteContent(db, row.content, clock_.Now() + kContentKept);
    DeleteUpload(db, row.upload);
    return absl::OkStatus();
  });
}

absl::Status ContentStore::RemoveUpload(const std::string& upload) {
  return database_.Write([&](Connection& db) {
    DeleteUpload(db, upload);
    return absl::OkStatus();
  });
}

absl::StatusOr<ContentBytes> ContentStore::Read(const std::string& deployment,
                                                const std::string& node, const std::string& sha256,
                                                int64_t offset, size_t limit) {
  std::optional<int64_t> id;
  std::optional<ContentRow> content;
  RETURN_IF_ERROR(database_.Read([&](Connection& db) {
    id = FindDeploymentWithContent(db, deployment, sha256);
    if (id) content = ReadContent(db, sha256);
    return absl::OkStatus();
  }));
  bool permitted = false;
  if (content) {
    ASSIGN_OR_RETURN(permitted, targets_.Contains(*id, node));
  }
  if (!permitted) return errors::ContentNotFound(ToHex(sha256), deployment);
  if (offset < 0 || offset > content->size) return errors::OffsetTooHigh(offset, content->size);
  ContentBytes bytes;
  bytes.size = content->size;
  ASSIGN_OR_RETURN(const auto source, blobs_->Open(BlobOf(sha256), offset));
  ASSIGN_OR_RETURN(bytes.data, ReadUpTo(*source, std::min(limit, kMaxContentPart)));
  return bytes;
}

void ContentStore::CloseIdle() {
  std::vector<std::shared_ptr<Session>> sessions;
  {
    MutexLock lock(mutex_);
    for (const auto& [id, session] : sessions_) sessions.push_back(session);
  }
  for (const auto& session : sessions) {
    if (!session->mutex.TryLock()) continue;  // a call uses it
    if (!session->closed && clock_.MonotonicNow() - session->used_at >= kIdle) Close(*session);
    session->mutex.Unlock();
  }
}

// Its session keeps calls away that would resume it.
absl::Status ContentStore::RemoveExpired(const ContentUploadRow& row, absl::Time now) {
  const auto session = FindSession(row);
  if (!session.ok()) return absl::OkStatus();                 // the next sweep removes it
  if (!(*session)->mutex.TryLock()) return absl::OkStatus();  // a call uses it
  absl::Status status;
  if (!(*session)->closed && (*session)->staged == nullptr) {
    status = DiscardExpired(row, now);
    Close(**session);
  }
  (*session)->mutex.Unlock();
  return status;
}

absl::Status ContentStore::DiscardExpired(const ContentUploadRow& row, absl::Time now) {
  bool deleted = false;
  RETURN_IF_ERROR(database_.Write([&](Connection& db) {
    deleted = DeleteExpiredUpload(db, row.upload, now);
    return absl::OkStatus();
  }));
  return deleted ? blobs_->DiscardStaged(row.upload) : absl::OkStatus();
}

absl::Status ContentStore::RemoveUnused(const std::string& sha256, absl::Time now) {
  MutexLock lock(change_mutex_);
  bool deleted = false;
  RETURN_IF_ERROR(database_.Write([&](Connection& db) {
    deleted = DeleteUnusedContent(db, sha256, now);
    return absl::OkStatus();
  }));
  return deleted ? blobs_->Remove(BlobOf(sha256)) : absl::OkStatus();
}

void ContentStore::Sweep() {
  CloseIdle();
  const absl::Time now = clock_.Now();
  std::vector<ContentUploadRow> uploads;
  std::vector<std::string> contents;
  absl::Status failure = database_.Read([&](Connection& db) {
    uploads = ReadExpiredUploads(db, now, kSweptAtOnce);
    contents = ReadUnusedContents(db, now, kSweptAtOnce);
    return absl::OkStatus();
  });
  for (const ContentUploadRow& upload : uploads) failure.Update(RemoveExpired(upload, now));
  for (const std::string& sha256 : contents) failure.Update(RemoveUnused(sha256, now));
  if (!failure.ok()) {
    LogLimited(LogLevel::kError, "contents that are not needed cannot be removed", "",
               {{"error", failure}});
  }
}

ContentUsage ContentStore::Usage() {
  ContentUsage usage;
  database_
      .Read([&](Connection& db) {
        usage = ReadContentUsage(db, "");
        return absl::OkStatus();
      })
      .IgnoreError();
  return usage;
}

}  // namespace muster
