// Who wants to know of new changes.
#ifndef MUSTER_SERVICES_COMMON_STORE_SQLITE_SUBSCRIBERS_H_
#define MUSTER_SERVICES_COMMON_STORE_SQLITE_SUBSCRIBERS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "services/common/base/mutex.h"
#include "services/common/store/change_feed.h"

namespace muster::sqlite {

// Thread-safe. Must outlive the subscriptions it gives out.
class Subscribers {
 public:
  std::unique_ptr<ChangeFeed::Subscription> Add(std::function<void(int64_t last)> on_change);
  void Notify(int64_t last);

 private:
  // Its mutex is held during a call, so that a subscription's end waits for one under way.
  struct Slot {
    Mutex mutex;
    std::function<void(int64_t last)> on_change ABSL_GUARDED_BY(mutex);  // empty: ended
  };
  class Handle;

  Mutex mutex_;
  std::vector<std::shared_ptr<Slot>> slots_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster::sqlite

#endif  // MUSTER_SERVICES_COMMON_STORE_SQLITE_SUBSCRIBERS_H_
