// The subscribers of the change feed.
#ifndef MUSTER_SERVICES_COMMON_STORE_SQLITE_SUBSCRIBERS_H_
#define MUSTER_SERVICES_COMMON_STORE_SQLITE_SUBSCRIBERS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "services/common/base/mutex.h"
#include "services/common/store/change_feed.h"

namespace muster::sqlite {

// Thread-safe. Must outlive its subscriptions.
class Subscribers {
 public:
  std::unique_ptr<ChangeFeed::Subscription> Add(std::function<void(int64_t last)> on_change);
  void Notify(int64_t last);

 private:
  // Its mutex is held during a call, so that the end of a subscription waits for a running call.
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
