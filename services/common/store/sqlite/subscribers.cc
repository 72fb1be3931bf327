#include "services/common/store/sqlite/subscribers.h"

#include <algorithm>
#include <utility>

namespace muster::sqlite {

class Subscribers::Handle final : public ChangeFeed::Subscription {
 public:
  Handle(Subscribers& subscribers, std::shared_ptr<Slot> slot)
      : subscribers_(subscribers), slot_(std::move(slot)) {}

  ~Handle() override {
    {
      MutexLock lock(slot_->mutex);
      slot_->on_change = nullptr;
    }
    MutexLock lock(subscribers_.mutex_);
    std::erase(subscribers_.slots_, slot_);
  }

 private:
  Subscribers& subscribers_;
  const std::shared_ptr<Slot> slot_;
};

std::unique_ptr<ChangeFeed::Subscription> Subscribers::Add(
    std::function<void(int64_t last)> on_change) {
  auto slot = std::make_shared<Slot>();
  {
    MutexLock lock(slot->mutex);
    slot->on_change = std::move(on_change);
  }
  MutexLock lock(mutex_);
  slots_.push_back(slot);
  return std::make_unique<Handle>(*this, std::move(slot));
}

void Subscribers::Notify(int64_t last) {
  std::vector<std::shared_ptr<Slot>> slots;
  {
    MutexLock lock(mutex_);
    slots = slots_;
  }
  for (const auto& slot : slots) {
    MutexLock lock(slot->mutex);
    if (slot->on_change) slot->on_change(last);
  }
}

}  // namespace muster::sqlite
