#include "services/relay/files/share_records.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "services/common/errors/results.h"
#include "services/common/errors/shares.h"
#include "services/common/identity/share_signature.h"

namespace muster {
namespace {

constexpr size_t kMaxUploads = 256;
constexpr int64_t kMaxUploadsOfSource = 16;
// The number of records of earlier files for each stored file.
constexpr int64_t kRememberedForEach = 3;

}  // namespace

ShareRecord ShareRecords::AsOfNow(const ShareRecord& record) const {
  ShareRecord is = record;
  if (is.stage == ShareStage::kEnded || ExpiryOf(is.share.file()) > clock_.Now()) return is;
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
    ShareRecord record = AsOfNow(*it->second.record);
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

void ShareRecords::Put(const ShareRecord& record) {
  auto is = std::make_shared<ShareRecord>(record);
  is->share.mutable_file()->clear_signature();
  is->share.mutable_file()->clear_certificate_chain_pem();
  MutexLock lock(mutex_);
  Slot& slot = AddSlot(NameOf(record.key()));
  if (slot.record != nullptr) {
    is->revision = slot.record->revision + 1;
    Charge(*slot.record, -1);
  }
  Charge(*is, 1);
  slot.record = std::move(is);
}

void ShareRecords::Erase(const ShareRecord& record) {
  MutexLock lock(mutex_);
  const auto it = slots_.find(NameOf(record.key()));
  if (it == slots_.end() || it->second.record == nullptr || it->second.record->id != record.id) {
    return;
  }
  Charge(*it->second.record, -1);
  it->second.record = nullptr;
  EraseIfEmpty(it);
}

void ShareRecords::AddUpload(const ShareUpload& upload) {
  const ShareName name = NameOf(upload.record.key());
  MutexLock lock(mutex_);
  uploads_[upload.record.id] = name;
  Slot& slot = AddSlot(name);
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
  const auto it = sources_.find(file.key().source());
  const Source source = it == sources_.end() ? Source() : it->second;
  // The largest file is always possible.
  const int64_t bytes = std::max(limits_.quota / 2, limits_.max_size);
  if (file.size() > bytes - source.usage.bytes) {
    return errors::ShareQuota(absl::StrCat("it stores at most ", bytes, " bytes of one source"));
  }
  const int64_t files = std::max<int64_t>(limits_.max_files / 2, 1);
  const bool is_known = slots_.contains(NameOf(file.key()));
  if (source.usage.files >= files ||
      (!is_known && source.keys >= files * (1 + kRememberedForEach))) {
    return errors::ShareQuota(absl::StrCat("it stores at most ", files, " files of one source"));
  }
  return absl::OkStatus();
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
  const auto known = static_cast<int64_t>(slots_.size());
  if (usage_.files >= limits_.max_files || known >= limits_.max_files * (1 + kRememberedForEach)) {
    return errors::ShareQuota(absl::StrCat("it stores at most ", limits_.max_files, " files"));
  }
  return CheckSource(file);
}

ShareRecords::Usage ShareRecords::usage() const {
  MutexLock lock(mutex_);
  return usage_;
}

}  // namespace muster
