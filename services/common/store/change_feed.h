// The ordered feed of all changes.
//
// A change is written in the transaction that causes it, and numbered without gaps. A follower
// stores the sequence of the last change it processed as its cursor and resumes from there. If the
// feed no longer contains the next changes, the follower takes a snapshot and continues from the
// snapshot's cursor.
#ifndef MUSTER_SERVICES_COMMON_STORE_CHANGE_FEED_H_
#define MUSTER_SERVICES_COMMON_STORE_CHANGE_FEED_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "services/common/store/records.h"

namespace muster {

// Thread-safe. Read may wait for the disk.
class ChangeFeed {
 public:
  virtual ~ChangeFeed() = default;

  // Returns up to `limit` changes after sequence `after`, in order; empty if there is none yet.
  // Fails with OUT_OF_RANGE: CURSOR_COMPACTED if some of them were dropped (the feed keeps at least
  // the newest kRetainedChanges), CURSOR_UNKNOWN if `after` is in the future.
  virtual absl::StatusOr<std::vector<ChangeRecord>> Read(int64_t after, int limit) = 0;

  // Returns the identity of the feed, to which its sequences belong. A restored backup has another
  // one.
  virtual absl::StatusOr<std::string> Identity() = 0;

  // Returns the sequence of the newest change, 0 if there is none.
  virtual absl::StatusOr<int64_t> Last() = 0;

  // Calls `on_change` on the store's thread after each commit with changes, until the returned
  // object is destroyed, which waits for a running call. `on_change` must not block.
  class Subscription {
   public:
    virtual ~Subscription() = default;
  };
  virtual std::unique_ptr<Subscription> Subscribe(std::function<void(int64_t last)> on_change) = 0;

  static constexpr int64_t kRetainedChanges = 1'000'000;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_STORE_CHANGE_FEED_H_
