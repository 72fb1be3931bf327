#include "services/relay/spool/spool_storage.h"

#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "services/common/base/crc32c.h"
#include "services/common/base/error.h"
#include "services/common/base/log.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/string_source.h"
#include "services/common/blob/files/files_blob_store.h"
#include "services/common/upload/upload_session.h"

namespace muster {
namespace {

constexpr size_t kReadBuffer = 256 * 1024;

absl::Status NoMatch() { return absl::DataLossError("its bytes do not match their checksum"); }

}  // namespace

bool IsProvenLoss(const absl::Status& status) {
  // A damaged page of the database proves nothing about one entry.
  if (ReasonOf(status) == "STORE_CORRUPT") return false;
  return absl::IsNotFound(status) || absl::IsDataLoss(status) || absl::IsOutOfRange(status);
}

absl::StatusOr<std::unique_ptr<SpoolStorage>> SpoolStorage::Open(
    const std::string& folder, sqlite::LocalDatabase::OnFatal on_fatal, FileOps& ops,
    FileOps& database_ops) {
  RETURN_IF_ERROR(MakeFolders(ops, folder));
  // The lock of the blobs keeps other processes from the database, too.
  FilesBlobStoreOptions blob_options;
  blob_options.root = folder + "/blobs";
  ASSIGN_OR_RETURN(auto blobs, OpenFilesBlobStore(std::move(blob_options), ops));
  ASSIGN_OR_RETURN(auto table,
                   SpoolTable::Open(folder + "/spool.db", std::move(on_fatal), database_ops));
  return std::unique_ptr<SpoolStorage>(new SpoolStorage(std::move(table), std::move(blobs)));
}

absl::StatusOr<std::unique_ptr<ByteSource>> SpoolStorage::Read(
    const SpoolEntry& entry, const v1::SubmitResultRequest& header, int64_t offset) {
  const int64_t size = header.spooled().size();
  if (size > kInlineLimit) return blobs_->Open(entry.blob(), offset);
  ASSIGN_OR_RETURN(const auto body, table_->ReadBody(entry.id));
  if (static_cast<int64_t>(body.size()) != size || offset > size ||
      Crc32c(body) != header.crc32c()) {
    return NoMatch();
  }
  return std::make_unique<StringSource>(body.substr(static_cast<size_t>(offset)));
}

absl::Status SpoolStorage::CheckSize(const SpoolEntry& entry,
                                     const v1::SubmitResultRequest& header) {
  const int64_t size = header.spooled().size();
  absl::Status status = Read(entry, header, size).status();
  // A second read tells lost bytes from a read that failed once.
  if (IsProvenLoss(status)) status = Read(entry, header, size).status();
  return status;
}

absl::Status SpoolStorage::CheckContent(const SpoolEntry& entry,
                                        const v1::SubmitResultRequest& header) {
  ASSIGN_OR_RETURN(const auto source, Read(entry, header, 0));
  std::string buffer(kReadBuffer, '\0');
  uint32_t crc32c = 0;
  while (true) {
    ASSIGN_OR_RETURN(const auto n, source->Read(buffer));
    if (n == 0) break;
    crc32c = ExtendCrc32c(crc32c, std::string_view(buffer).substr(0, n));
  }
  return crc32c == header.crc32c() ? absl::OkStatus() : NoMatch();
}

absl::Status SpoolStorage::RemoveNow(const std::string& id, const std::string& blob) {
  RETURN_IF_ERROR(table_->Remove(id));
  return blob.empty() ? absl::OkStatus() : blobs_->Remove(blob);
}

bool SpoolStorage::Remove(const SpoolEntry& entry) {
  // The bytes of an upload may be published already.
  const bool has_blob = !entry.complete() || entry.size > kInlineLimit;
  const std::string blob = has_blob ? entry.blob() : "";
  const absl::Status removed = RemoveNow(entry.id, blob);
  if (removed.ok()) return true;
  Log(LogLevel::kError, "an entry of the spool cannot be removed now",
      {{"id", entry.id}, {"error", removed}});
  MutexLock lock(mutex_);
  unremoved_[entry.id] = blob;
  return false;
}

std::vector<std::string> SpoolStorage::RetryRemovals() {
  std::map<std::string, std::string> open;
  {
    MutexLock lock(mutex_);
    open.swap(unremoved_);
  }
  std::vector<std::string> removed;
  absl::Status failed;
  for (auto it = open.begin(); it != open.end() && failed.ok();) {
    failed = RemoveNow(it->first, it->second);
    if (!failed.ok()) break;
    removed.push_back(it->first);
    it = open.erase(it);
  }
  if (!failed.ok()) {
    Log(LogLevel::kWarning, "entries of the spool still cannot be removed",
        {{"entries", static_cast<int64_t>(open.size())}, {"error", failed}});
  }
  MutexLock lock(mutex_);
  unremoved_.merge(open);
  return removed;
}

absl::Status SpoolStorage::RemoveUnknownBytes(
    const std::function<bool(const std::string& id)>& is_upload,
    const std::function<bool(const std::string& id)>& has_row) {
  ASSIGN_OR_RETURN(const auto staged, blobs_->ListStaged());
  for (const std::string& id : staged) {
    if (is_upload(id)) continue;
    RETURN_IF_ERROR(blobs_->DiscardStaged(id));
  }
  ASSIGN_OR_RETURN(const auto published, blobs_->ListPublished());
  for (const std::string& name : published) {
    if (has_row(name.substr(name.rfind('/') + 1))) continue;
    Log(LogLevel::kInfo, "bytes without an entry of the spool are removed", {{"blob", name}});
    RETURN_IF_ERROR(blobs_->Remove(name));
  }
  return absl::OkStatus();
}

}  // namespace muster
