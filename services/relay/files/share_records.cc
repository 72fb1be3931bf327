#include "services/relay/files/share_records.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/results.h"
#include "services/common/errors/shares.h"
#include "services/common/identity/share_signature.h"

namespace muster {
namespace {

constexpr size_t kMaxUploads = 256;
constexpr int64_t kMaxUploadsOfSource = 16;
// The number of keys for each stored file: the others have the records of earlier files.
constexpr int64_t kKeysForEach = 4;

bool IsForgettable(const ShareRecord& record) {
  return !record.unreported &&
         (record.stage == ShareStage::kEnded || record.stage == ShareStage::kPassedUp);
}

}  // namespace

bool ShareRecords::HasExpired(const ShareRecord& record) const {
  return record.stage != ShareStage::kEnded && ExpiryOf(record.share.file()) <= clock_.Now();
}

ShareRecord ShareRecords::AsOfNow(const ShareRecord& record) const {
  ShareRecord is = record;
  if (!HasExpired(record)) return is;
  is.stage = ShareStage::kEnded;
  is.share.set_state(v1::SHARE_STATE_EXPIRED);
  *is.share.mutable_change_time() = is.share.file().expire_time();
  return is;
}

std::shared_ptr<const ShareRecord> ShareRecords::Stored(const v1::ShareKey& key) const {
  MutexLock lock(mutex_);
  const auto it = slots_.find(NameOf(key));
  return it == slots_.end() ? nullptr : it->second.record;
}

std::optional<ShareRecord> ShareRecords::Find(const v1::ShareKey& key) const {
  const auto stored = Stored(key);
  if (stored == nullptr) return std::nullopt;
  return AsOfNow(*stored);
}

std::vector<ShareRecord> ShareRecords::Select(const ShareName& after, size_t limit,
                                              const Pick& wanted) const {
  std::vector<ShareRecord> list;
  MutexLock lock(mutex_);
  for (auto it = slots_.upper_bound(after); it != slots_.end() && list.size() < limit; ++it) {
    if (it->second.record == nullptr) continue;
    const ShareRecord& stored = *it->second.record;
    // Most records are not wanted: only those that expired are copied for the question.
    if (!HasExpired(stored)) {
      if (wanted(stored)) list.push_back(stored);
      continue;
    }
    ShareRecord record = AsOfNow(stored);
    if (wanted(record)) list.push_back(std::move(record));
  }
  return list;
}

bool ShareRecords::IsCurrent(const ShareRecord& record) const {
  const auto stored = Stored(record.key());
  return stored != nullptr && stored->id == record.id && stored->revision == record.revision;
}

void ShareRecords::Charge(const ShareRecord& record, int sign) {
  if (!record.has_bytes()) return;
  for (Usage* usage : {&usage_, &sources_[record.key().source()].usage}) {
    usage->files += sign;
    usage->bytes += sign * record.share.file().size();
  }
}

ShareRecords::Slot& ShareRecords::AddSlot(const ShareName& name) {
  const auto [it, added] = slots_.try_emplace(name);
  if (added) ++sources_[std::get<0>(name)].keys;
  return it->second;
}

void ShareRecords::EraseIfEmpty(Slots::iterator it) {
  if (it->second.record != nullptr || it->second.upload) return;
  const auto source = sources_.find(std::get<0>(it->first));
  if (--source->second.keys == 0) sources_.erase(source);
  slots_.erase(it);
}

void ShareRecords::IndexForgettable(const Slot& slot, bool add) {
  if (slot.record == nullptr || (add && (slot.upload || !IsForgettable(*slot.record)))) return;
  const ShareRecord& record = *slot.record;
  for (const std::string& source : {std::string(), record.key().source()}) {
    Forgettable entry = {source, record.stage != ShareStage::kEnded,
                         record.share.change_time().seconds(), NameOf(record.key())};
    if (add) {
      forgettable_.insert(std::move(entry));
    } else {
      forgettable_.erase(entry);
    }
  }
}

void ShareRecords::Put(const ShareRecord& record) {
  auto is = std::make_shared<ShareRecord>(record);
  is->share.mutable_file()->clear_signature();
  is->share.mutable_file()->clear_certificate_chain_pem();
  MutexLock lock(mutex_);
  Slot& slot = AddSlot(NameOf(record.key()));
  IndexForgettable(slot, /*add=*/false);
  if (slot.record != nullptr) {
    is->revision = slot.record->revision + 1;
    Charge(*slot.record, -1);
  }
  Charge(*is, 1);
  slot.record = std::move(is);
  IndexForgettable(slot, /*add=*/true);
}

void ShareRecords::Erase(const ShareRecord& record) {
  MutexLock lock(mutex_);
  const auto it = slots_.find(NameOf(record.key()));
  if (it == slots_.end() || it->second.record == nullptr || it->second.record->id != record.id) {
    return;
  }
  IndexForgettable(it->second, /*add=*/false);
  Charge(*it->second.record, -1);
  it->second.record = nullptr;
  EraseIfEmpty(it);
}

void ShareRecords::AddUpload(const ShareUpload& upload) {
  const ShareName name = NameOf(upload.record.key());
  MutexLock lock(mutex_);
  uploads_[upload.record.id] = name;
  Slot& slot = AddSlot(name);
  IndexForgettable(slot, /*add=*/false);
  slot.upload = upload;
  slot.upload->active = clock_.MonotonicNow();
  Charge(upload.record, 1);
}

std::optional<ShareUpload> ShareRecords::ReopenUpload(const ShareRecord& record) {
  MutexLock lock(mutex_);
  const auto it = slots_.find(NameOf(record.key()));
  if (it == slots_.end() || !it->second.upload) return std::nullopt;
  ShareUpload& upload = *it->second.upload;
  upload.record = record;
  upload.active = clock_.MonotonicNow();
  ++upload.epoch;
  return upload;
}

std::optional<ShareUpload> ShareRecords::FindUpload(std::string_view id) const {
  MutexLock lock(mutex_);
  const auto it = uploads_.find(std::string(id));
  if (it == uploads_.end()) return std::nullopt;
  return slots_.at(it->second).upload;
}

std::optional<ShareUpload> ShareRecords::UploadOf(const v1::ShareKey& key) const {
  MutexLock lock(mutex_);
  const auto it = slots_.find(NameOf(key));
  if (it == slots_.end()) return std::nullopt;
  return it->second.upload;
}

std::optional<ShareUpload> ShareRecords::RemoveUpload(const v1::ShareKey& key) {
  MutexLock lock(mutex_);
  const auto it = slots_.find(NameOf(key));
  if (it == slots_.end() || !it->second.upload) return std::nullopt;
  auto upload = std::exchange(it->second.upload, std::nullopt);
  uploads_.erase(upload->record.id);
  Charge(upload->record, -1);
  IndexForgettable(it->second, /*add=*/true);
  EraseIfEmpty(it);
  return upload;
}

std::vector<v1::ShareKey> ShareRecords::IdleUploads(absl::Duration idle) {
  std::vector<v1::ShareKey> keys;
  const absl::Duration now = clock_.MonotonicNow();
  MutexLock lock(mutex_);
  for (const auto& [id, name] : uploads_) {
    ShareUpload& upload = *slots_.at(name).upload;
    const bool attached = upload.session->attached();
    if (attached) upload.active = now;
    if (attached ? upload.session->StalledFor() > idle : now - upload.active > idle) {
      keys.push_back(upload.record.key());
    }
  }
  return keys;
}

std::vector<std::shared_ptr<UploadSession>> ShareRecords::sessions() const {
  std::vector<std::shared_ptr<UploadSession>> sessions;
  MutexLock lock(mutex_);
  for (const auto& [id, name] : uploads_) sessions.push_back(slots_.at(name).upload->session);
  return sessions;
}

absl::Status ShareRecords::CheckSource(const v1::SharedFile& file) const {
  const Source source = SourceOf(file);
  // The largest file is always possible.
  const int64_t bytes = std::max(limits_.quota / 2, limits_.max_size);
  if (file.size() > bytes - source.usage.bytes) {
    return errors::ShareQuota(absl::StrCat("it stores at most ", bytes, " bytes of one source"));
  }
  if (source.usage.files >= MaxFilesOfSource()) {
    return errors::ShareQuota(
        absl::StrCat("it stores at most ", MaxFilesOfSource(), " files of one source"));
  }
  return absl::OkStatus();
}

ShareRecords::Source ShareRecords::SourceOf(const v1::SharedFile& file) const {
  const auto it = sources_.find(file.key().source());
  return it == sources_.end() ? Source() : it->second;
}

absl::Status ShareRecords::CheckKeys(const v1::SharedFile& file) const {
  if (slots_.contains(NameOf(file.key()))) return absl::OkStatus();
  const int64_t of_source = MaxFilesOfSource() * kKeysForEach;
  if (SourceOf(file).keys >= of_source) {
    return errors::ShareQuota(absl::StrCat("it remembers at most ", of_source,
                                           " files of one source, also those of other relays"));
  }
  const int64_t in_all = limits_.max_files * kKeysForEach;
  if (static_cast<int64_t>(slots_.size()) < in_all) return absl::OkStatus();
  return errors::ShareQuota(
      absl::StrCat("it remembers at most ", in_all, " files, also those of other relays"));
}

std::optional<ShareRecord> ShareRecords::FindForgettable(const v1::SharedFile& file) const {
  MutexLock lock(mutex_);
  if (CheckKeys(file).ok()) return std::nullopt;
  const std::string& source = file.key().source();
  const bool source_full = SourceOf(file).keys >= MaxFilesOfSource() * kKeysForEach;
  const std::string scope = source_full ? source : "";
  const auto first =
      forgettable_.lower_bound({scope, false, std::numeric_limits<int64_t>::min(), {}});
  if (first == forgettable_.end() || std::get<0>(*first) != scope) return std::nullopt;
  return *slots_.at(std::get<3>(*first)).record;
}

absl::Status ShareRecords::CheckLimits(const v1::SharedFile& file) const {
  MutexLock lock(mutex_);
  if (uploads_.size() >= kMaxUploads) {
    return errors::TooManyUploads(static_cast<int64_t>(kMaxUploads));
  }
  // One source must not use all uploads.
  const auto of_source = std::ranges::count_if(uploads_, [&](const auto& upload) {
    return std::get<0>(upload.second) == file.key().source();
  });
  if (of_source >= kMaxUploadsOfSource) return errors::TooManyUploads(kMaxUploadsOfSource);
  const int64_t free = limits_.quota - usage_.bytes;
  if (file.size() > free) {
    return errors::ShareQuota(absl::StrCat("the file has ", file.size(), " bytes; ",
                                           std::max<int64_t>(free, 0), " of ", limits_.quota,
                                           " are free"));
  }
  if (usage_.files >= limits_.max_files) {
    return errors::ShareQuota(absl::StrCat("it stores at most ", limits_.max_files, " files"));
  }
  RETURN_IF_ERROR(CheckSource(file));
  return CheckKeys(file);
}

ShareRecords::Usage ShareRecords::usage() const {
  MutexLock lock(mutex_);
  return usage_;
}

}  // namespace muster
