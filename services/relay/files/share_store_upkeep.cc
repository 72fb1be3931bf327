// What a store of shared files does at its start, and from time to time.
#include <algorithm>
#include <cstdint>
#include <set>
#include <string_view>
#include <utility>

#include "services/common/base/log.h"
#include "services/common/base/status_macros.h"
#include "services/common/blob/files/files_blob_store.h"
#include "services/relay/files/share_store.h"
#include "services/relay/files/share_store_figures.h"

namespace muster {
namespace {

constexpr int64_t kMaxRecordFile = 64 * 1024;
constexpr uint64_t kOrdersOfUnread = uint64_t{1} << 32;
constexpr absl::Duration kIdle = absl::Hours(1);
constexpr absl::Duration kRemembered = absl::Hours(24 * 7);

bool IsRecordName(std::string_view file) {
  return file.size() == 32 && file.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

absl::Time Since(const ShareRecord& record) {
  return absl::FromUnixSeconds(record.share.change_time().seconds());
}

}  // namespace

ShareStore::ShareStore(ShareStoreOptions options, std::unique_ptr<BlobStore> blobs,
                       const Clock& clock, Metrics& metrics, FileOps& ops)
    : options_(std::move(options)),
      blobs_(std::move(blobs)),
      clock_(clock),
      ops_(ops),
      figures_(std::make_unique<Figures>(metrics)) {
  figures_->quota.Set(static_cast<double>(options_.quota));
}

absl::StatusOr<std::unique_ptr<ShareStore>> ShareStore::Open(ShareStoreOptions options,
                                                             const Clock& clock, Metrics& metrics,
                                                             FileOps& ops) {
  RETURN_IF_ERROR(MakeFolders(ops, options.folder + "/records"));
  FilesBlobStoreOptions blobs;
  blobs.root = options.folder + "/blobs";
  ASSIGN_OR_RETURN(auto opened, OpenFilesBlobStore(std::move(blobs), ops));
  std::unique_ptr<ShareStore> store(
      new ShareStore(std::move(options), std::move(opened), clock, metrics, ops));
  RETURN_IF_ERROR(store->Recover());
  return store;
}

absl::Status ShareStore::Recover() {
  ASSIGN_OR_RETURN(const auto files, ops_.List(options_.folder + "/records"));
  std::set<std::string> unread;
  for (const FolderEntry& file : files) {
    RETURN_IF_ERROR(RecoverRecord(file.name, &unread));
  }
  // New records have to be later than those whose order is not known.
  if (!unread.empty()) last_order_ += kOrdersOfUnread;
  ASSIGN_OR_RETURN(const auto staged, blobs_->ListStaged());
  for (const std::string& id : staged) {
    if (uploads_.contains(id) || unread.contains(id)) continue;
    RETURN_IF_ERROR(blobs_->DiscardStaged(id));
  }
  return absl::OkStatus();
}

// DATA_LOSS if it is damaged, also when it is read a second time; any other failure may pass.
absl::StatusOr<ShareRecord> ShareStore::ReadRecord(const std::string& file) const {
  for (int tries = 1;; ++tries) {
    const auto content = ReadSmallFile(ops_, PathOf(file), kMaxRecordFile);
    if (absl::IsOutOfRange(content.status())) return absl::DataLossError("it is too long");
    if (!content.ok()) return content.status();
    auto record = ParseShareRecord(file, *content);
    if (record.ok() || tries == 2) return record;
  }
}

absl::Status ShareStore::RecoverRecord(const std::string& file, std::set<std::string>* unread) {
  // What a crash left of one that was being replaced is none.
  if (!IsRecordName(file)) return ops_.Remove(PathOf(file));
  auto record = ReadRecord(file);
  if (absl::IsDataLoss(record.status())) {
    Log(LogLevel::kError, "a record of a shared file is damaged and is removed",
        {{"file", file}, {"error", record.status()}});
    return ops_.Remove(PathOf(file));
  }
  if (!record.ok()) {
    Log(LogLevel::kError, "a record of a shared file cannot be read and stays for the next start",
        {{"file", file}, {"error", record.status()}});
    unread->insert(file);
    return absl::OkStatus();
  }
  last_order_ = std::max(last_order_, record->order);
  Slot& slot = slots_[NameOf(record->key())];
  if (record->stage == ShareStage::kIncoming) {
    if (slot.incoming != nullptr) return ops_.Remove(PathOf(file));
    slot.incoming = std::make_shared<ShareUpload>(*record, *blobs_);
    slot.touched = clock_.Now();
    uploads_[record->id] = slot.incoming;
    ++files_;
    bytes_ += slot.incoming->size();
    return absl::OkStatus();
  }
  if (slot.current != nullptr && slot.current->order > record->order) {
    RemoveFiles(*record);
    return absl::OkStatus();
  }
  if (record->stage != ShareStage::kHeld) {
    RETURN_IF_ERROR(blobs_->Remove(record->blob()));
  } else if (absl::Status s = RecoverHeld(*record); !s.ok()) {
    return s;
  }
  if (slot.current != nullptr) RemoveFiles(*slot.current);
  Put(*record);
  return absl::OkStatus();
}

// Ends a held file whose bytes are proven to be lost: absent, or of another size. One that cannot
// be looked at now stays held.
absl::Status ShareStore::RecoverHeld(ShareRecord& record) {
  const auto size = blobs_->Size(record.blob());
  const bool lost =
      size.ok() ? *size != record.share.file().size() : absl::IsNotFound(size.status());
  if (!lost) return absl::OkStatus();
  Log(LogLevel::kError, "the bytes of a shared file are lost",
      {{"source", record.key().source()},
       {"target", record.key().target()},
       {"id", record.key().id()}});
  record.stage = ShareStage::kEnded;
  record.unreported = record.from_parent;
  record.share.set_state(v1::SHARE_STATE_REFUSED);
  record.share.set_reason("the relay lost its bytes: suspect the disk");
  return Write(record);
}

v1::ShareUsage ShareStore::Usage() const {
  v1::ShareUsage usage;
  usage.set_relay(options_.relay);
  usage.set_max_files(options_.max_files);
  usage.set_quota(options_.quota);
  MutexLock lock(mutex_);
  usage.set_files(files_);
  usage.set_bytes(bytes_);
  return usage;
}

void ShareStore::DropIdle(absl::Time now) {
  std::vector<v1::ShareKey> idle;
  {
    MutexLock lock(mutex_);
    for (auto& [name, slot] : slots_) {
      if (slot.incoming == nullptr) continue;
      if (slot.incoming->chunks() != slot.chunks) {
        slot.chunks = slot.incoming->chunks();
        slot.touched = now;
      } else if (now - slot.touched > kIdle) {
        idle.push_back(slot.incoming->record().key());
      }
    }
  }
  for (const v1::ShareKey& key : idle) DropUpload(key);
}

void ShareStore::Sweep() {
  const absl::Time now = clock_.Now();
  DropIdle(now);
  // What has expired is seen as such already: here the disk follows.
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
      RemoveFiles(record);
      Erase(record);
      continue;
    }
    const auto on_disk = [&] {
      MutexLock lock(mutex_);
      const auto it = slots_.find(NameOf(record.key()));
      return it == slots_.end() ? nullptr : it->second.current;
    }();
    if (on_disk == nullptr || on_disk->stage == ShareStage::kEnded) continue;
    record.stage = ShareStage::kEnded;
    record.unreported = record.from_parent;
    record.share.set_state(v1::SHARE_STATE_EXPIRED);
    if (old) record.share.set_reason("no way to its target was found for a week");
    record.share.mutable_change_time()->set_seconds(absl::ToUnixSeconds(now));
    if (const absl::Status s = Update(*on_disk, record); !s.ok() && !absl::IsAborted(s)) {
      Log(LogLevel::kError, "a shared file that has expired cannot be removed", {{"error", s}});
    }
  }
}

}  // namespace muster
