// The start and the sweep of the store.
#include <cstdint>
#include <set>
#include <string>
#include <utility>

#include "services/common/base/log.h"
#include "services/common/base/status_macros.h"
#include "services/common/blob/files/files_blob_store.h"
#include "services/common/identity/share_signature.h"
#include "services/relay/files/share_counters.h"
#include "services/relay/files/share_store.h"

namespace muster {
namespace {

constexpr absl::Duration kIdle = absl::Hours(1);
constexpr absl::Duration kStallLimit = absl::Seconds(60);
// A stream follows the open of its upload immediately.
constexpr absl::Duration kFilesIdle = absl::Seconds(10);
constexpr absl::Duration kRemembered = absl::Hours(24 * 7);

absl::Time Since(const ShareRecord& record) {
  return absl::FromUnixSeconds(record.share.change_time().seconds());
}

}  // namespace

ShareStore::ShareStore(ShareStoreOptions options, std::unique_ptr<ShareTable> table,
                       std::unique_ptr<BlobStore> blobs, Executor& disk, const Clock& clock,
                       Metrics& metrics)
    : options_(std::move(options)),
      table_(std::move(table)),
      blobs_(std::move(blobs)),
      disk_(disk),
      clock_(clock),
      counters_(std::make_unique<ShareCounters>(metrics)),
      records_(clock, {options_.quota, options_.max_files, options_.max_size}) {
  metrics.AddSampledGauge("muster_relay_shares",
                          "Shared files that are stored here or are arriving.",
                          [this] { return static_cast<double>(files()); });
  metrics.AddSampledGauge("muster_relay_share_bytes",
                          "The used part of the quota for shared files.",
                          [this] { return static_cast<double>(bytes()); });
  counters_->quota.Set(static_cast<double>(options_.quota));
}

ShareStore::~ShareStore() = default;

absl::StatusOr<std::unique_ptr<ShareStore>> ShareStore::Open(ShareStoreOptions options,
                                                             Executor& disk, const Clock& clock,
                                                             Metrics& metrics, FileOps& ops) {
  RETURN_IF_ERROR(MakeFolders(ops, options.folder));
  // The lock of the blobs keeps other processes from the database, too.
  FilesBlobStoreOptions blob_options;
  blob_options.root = options.folder + "/blobs";
  ASSIGN_OR_RETURN(auto blobs, OpenFilesBlobStore(std::move(blob_options), ops));
  ASSIGN_OR_RETURN(auto table, ShareTable::Open(options.folder + "/shares.db", options.on_fatal));
  std::unique_ptr<ShareStore> store(
      new ShareStore(std::move(options), std::move(table), std::move(blobs), disk, clock, metrics));
  RETURN_IF_ERROR(store->Recover());
  return store;
}

absl::Status ShareStore::Recover() {
  ASSIGN_OR_RETURN(auto contents, table_->Load());
  MutexLock change(change_mutex_);
  for (const std::string& id : contents.damaged) {
    Log(LogLevel::kError, "the record of a shared file is damaged and is removed", {{"id", id}});
    RETURN_IF_ERROR(table_->Remove(id));
  }
  for (ShareTable::Row& row : contents.rows) {
    RETURN_IF_ERROR(RecoverRow(std::move(row)));
  }
  return RemoveUnknownBytes();
}

absl::Status ShareStore::RecoverRow(ShareTable::Row row) {
  if (row.record.stage == ShareStage::kIncoming) {
    // Two rows of one key remain if the removal of the first one failed.
    if (records_.UploadOf(row.record.key())) {
      Log(LogLevel::kWarning, "a second upload of the same shared file is removed",
          {{"id", row.record.id}});
      return table_->Remove(row.record.id);
    }
    AddUpload(row.record);
    return absl::OkStatus();
  }
  if (row.record.stage == ShareStage::kHeld) {
    RETURN_IF_ERROR(RecoverHeld(row));
  }
  records_.Put(row.record);
  return absl::OkStatus();
}

// Ends a held file whose bytes are proven to be lost: they are absent or have another size. A file
// that cannot be read now stays.
absl::Status ShareStore::RecoverHeld(ShareTable::Row& row) {
  ShareRecord& record = row.record;
  const int64_t expected = record.share.file().size();
  bool lost = row.body_size != expected;
  if (expected > kInlineLimit) {
    const auto size = blobs_->Size(record.blob());
    lost = size.ok() ? *size != expected : absl::IsNotFound(size.status());
  }
  if (!lost) return absl::OkStatus();
  Log(LogLevel::kError, "the bytes of a shared file are lost",
      {{"source", record.key().source()},
       {"target", record.key().target()},
       {"id", record.key().id()}});
  record.stage = ShareStage::kEnded;
  record.unreported = record.from_parent;
  record.share.set_state(v1::SHARE_STATE_REFUSED);
  record.share.set_reason("the relay lost its bytes: suspect the disk");
  return table_->Put(record);
}

// Removes the bytes that a crash left after the removal or the replacement of their row.
absl::Status ShareStore::RemoveUnknownBytes() {
  std::set<std::string> held;
  for (const ShareRecord& record : Select({}, SIZE_MAX, [](const auto&) { return true; })) {
    if (records_.Stored(record.key())->has_bytes()) held.insert(record.id);
  }
  ASSIGN_OR_RETURN(const auto staged, blobs_->ListStaged());
  for (const std::string& id : staged) {
    if (records_.FindUpload(id)) continue;
    RETURN_IF_ERROR(blobs_->DiscardStaged(id));
  }
  ASSIGN_OR_RETURN(const auto published, blobs_->ListPublished());
  for (const std::string& name : published) {
    const std::string id = name.substr(name.rfind('/') + 1);
    if (held.contains(id) || records_.FindUpload(id)) continue;
    RETURN_IF_ERROR(blobs_->Remove(name));
  }
  return absl::OkStatus();
}

// Removes the record of a file that is not held. A failed removal is repeated by the next sweep.
absl::Status ShareStore::Forget(const ShareRecord& record) {
  RETURN_IF_ERROR(table_->Remove(record.id));
  RETURN_IF_ERROR(blobs_->Remove(record.blob()));
  records_.Erase(record);
  return absl::OkStatus();
}

void ShareStore::Sweep() {
  const absl::Time now = clock_.Now();
  for (const v1::ShareKey& key : records_.IdleUploads(kIdle)) DropUpload(key);
  for (const auto& session : records_.sessions()) {
    session->EndStalledStream(kStallLimit);
    session->CloseIdleFiles(kFilesIdle);
  }
  // An expired file is not returned any more; its record and its bytes are removed here.
  const auto over = Select({}, SIZE_MAX, [&](const ShareRecord& record) {
    return record.stage == ShareStage::kEnded ||
           (now - Since(record) > kRemembered &&
            (record.stage != ShareStage::kHeld ||
             record.share.state() == v1::SHARE_STATE_IN_TRANSIT));
  });
  for (ShareRecord record : over) {
    const bool old = now - Since(record) > kRemembered;
    if (old && record.stage != ShareStage::kHeld) {
      MutexLock change(change_mutex_);
      if (const absl::Status forgotten = Forget(record); !forgotten.ok()) {
        Log(LogLevel::kError, "a shared file cannot be removed", {{"error", forgotten}});
      }
      continue;
    }
    const auto stored = records_.Stored(record.key());
    if (stored == nullptr || stored->stage == ShareStage::kEnded) continue;
    record.stage = ShareStage::kEnded;
    record.unreported = record.from_parent;
    record.share.set_state(v1::SHARE_STATE_EXPIRED);
    if (old) record.share.set_reason("no route to its target was found for a week");
    record.share.mutable_change_time()->set_seconds(absl::ToUnixSeconds(now));
    if (const absl::Status s = Update(*stored, record); !s.ok() && !absl::IsAborted(s)) {
      Log(LogLevel::kError, "an expired shared file cannot be removed", {{"error", s}});
    }
  }
}

}  // namespace muster
