#include "services/relay/spool/spool_index.h"

#include "absl/strings/str_cat.h"
#include "services/common/upload/attempt.h"
#include "services/common/upload/blob_names.h"

namespace muster {
namespace {

std::string AttemptName(const v1::ResultDescription& description) {
  return absl::StrCat(description.key().run(), "/", description.key().plugin(), "/",
                      description.key().node(), "/", description.attempt(),
                      description.is_error() ? "/e" : "");
}

}  // namespace

std::string SpoolEntry::blob() const { return ResultBlobName(description.key().run(), id); }

absl::StatusOr<std::optional<SpoolEntry>> SpoolIndex::Reopen(const v1::OpenUploadRequest& request,
                                                             absl::Duration now) {
  MutexLock lock(mutex_);
  const auto it = by_attempt_.find(AttemptName(request.description()));
  if (it == by_attempt_.end()) return std::optional<SpoolEntry>();
  SpoolEntry& entry = slots_.at(it->second).entry;
  const bool same_size = !request.has_size() || request.size() == entry.size;
  const bool same_digest = request.sha256().empty() || request.sha256() == entry.sha256;
  if (entry.complete() && !(same_size && same_digest)) {
    const int64_t attempt = request.description().attempt();
    return StaleAttempt(attempt, attempt);
  }
  if (!entry.complete()) entry.description = request.description();
  ++entry.epoch;
  entry.opened = now;
  return std::optional<SpoolEntry>(entry);
}

bool SpoolIndex::Insert(const SpoolEntry& entry) {
  MutexLock lock(mutex_);
  if (!by_attempt_.try_emplace(AttemptName(entry.description), entry.id).second) return false;
  slots_[entry.id].entry = entry;
  return true;
}

std::optional<SpoolEntry> SpoolIndex::Find(std::string_view id) const {
  MutexLock lock(mutex_);
  const auto it = slots_.find(std::string(id));
  if (it == slots_.end()) return std::nullopt;
  return it->second.entry;
}

bool SpoolIndex::HasDeliverable(const v1::ResultDescription& description) const {
  MutexLock lock(mutex_);
  const auto it = by_attempt_.find(AttemptName(description));
  if (it == by_attempt_.end()) return false;
  const Slot& slot = slots_.at(it->second);
  return slot.entry.complete() && !slot.delivery_failed;
}

void SpoolIndex::NoteFailedDelivery(std::string_view id) {
  MutexLock lock(mutex_);
  const auto it = slots_.find(std::string(id));
  if (it != slots_.end()) it->second.delivery_failed = true;
}

std::optional<SpoolEntry> SpoolIndex::BeginCommit(std::string_view id) {
  MutexLock lock(mutex_);
  const auto it = slots_.find(std::string(id));
  if (it == slots_.end() || it->second.committing || it->second.entry.complete()) {
    return std::nullopt;
  }
  it->second.committing = true;
  return it->second.entry;
}

void SpoolIndex::CancelCommit(std::string_view id) {
  MutexLock lock(mutex_);
  const auto it = slots_.find(std::string(id));
  if (it != slots_.end()) it->second.committing = false;
}

void SpoolIndex::EndCommit(std::string_view id, int64_t size, const std::string& sha256,
                           absl::Time expires) {
  MutexLock lock(mutex_);
  Slot& slot = slots_.at(std::string(id));
  slot.committing = false;
  slot.entry.session = nullptr;
  slot.entry.size = size;
  slot.entry.sha256 = sha256;
  slot.entry.expires = expires;
}

void SpoolIndex::Erase(Slots::iterator it) {
  by_attempt_.erase(AttemptName(it->second.entry.description));
  slots_.erase(it);
}

std::optional<SpoolEntry> SpoolIndex::RemoveUpload(const v1::ResultDescription& description) {
  MutexLock lock(mutex_);
  const auto attempt = by_attempt_.find(AttemptName(description));
  if (attempt == by_attempt_.end()) return std::nullopt;
  const auto it = slots_.find(attempt->second);
  if (it->second.committing || it->second.entry.complete()) return std::nullopt;
  SpoolEntry entry = it->second.entry;
  Erase(it);
  return entry;
}

std::vector<SpoolEntry> SpoolIndex::RemoveIdleUploads(absl::Duration before) {
  std::vector<SpoolEntry> idle;
  MutexLock lock(mutex_);
  for (auto it = slots_.begin(); it != slots_.end();) {
    const auto next = std::next(it);
    const SpoolEntry& entry = it->second.entry;
    if (!entry.complete() && !it->second.committing && !entry.session->attached() &&
        entry.opened < before) {
      idle.push_back(entry);
      Erase(it);
    }
    it = next;
  }
  return idle;
}

void SpoolIndex::RemoveResult(std::string_view id) {
  MutexLock lock(mutex_);
  const auto it = slots_.find(std::string(id));
  if (it != slots_.end() && it->second.entry.complete()) Erase(it);
}

std::vector<std::shared_ptr<UploadSession>> SpoolIndex::sessions() const {
  std::vector<std::shared_ptr<UploadSession>> sessions;
  MutexLock lock(mutex_);
  for (const auto& [id, slot] : slots_) {
    if (slot.entry.session != nullptr) sessions.push_back(slot.entry.session);
  }
  return sessions;
}

}  // namespace muster
