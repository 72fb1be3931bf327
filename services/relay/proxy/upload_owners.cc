#include "services/relay/proxy/upload_owners.h"

#include "services/common/errors/results.h"

namespace muster {

absl::StatusOr<UploadOwners::Ownership> UploadOwners::Acquire(const std::string& caller,
                                                              const std::string& id, int64_t epoch,
                                                              OnTakenOver on_taken_over) {
  const Name name = {caller, id};
  uint64_t number = 0;
  OnTakenOver taken_over;
  {
    MutexLock lock(mutex_);
    Owner& owner = owners_[name];
    if (owner.number != 0 && owner.epoch > epoch) return errors::TakenOver(id);
    taken_over = std::move(owner.on_taken_over);
    number = ++last_number_;
    owner = {number, epoch, std::move(on_taken_over)};
  }
  if (taken_over) taken_over();
  return Ownership(nullptr, [this, name, number](void*) { Release(name, number); });
}

void UploadOwners::Release(const Name& name, uint64_t number) {
  OnTakenOver dropped;  // destroyed without the lock
  MutexLock lock(mutex_);
  const auto it = owners_.find(name);
  if (it == owners_.end() || it->second.number != number) return;
  dropped = std::move(it->second.on_taken_over);
  owners_.erase(it);
}

}  // namespace muster
