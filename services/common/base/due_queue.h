// Keys ordered by deadline.
#ifndef MUSTER_SERVICES_COMMON_BASE_DUE_QUEUE_H_
#define MUSTER_SERVICES_COMMON_BASE_DUE_QUEUE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"

namespace muster {

// A set of keys, each with one deadline in monotonic time. Set, Remove and PopDue cost O(log n).
// Not thread-safe.
template <typename Key>
class DueQueue {
 public:
  // Sets the deadline of `key`, and adds the key if it is absent.
  void Set(const Key& key, absl::Duration due) {
    const Place place{due, ++last_number_};
    const auto [known, added] = places_.try_emplace(key, place);
    if (!added) {
      keys_.erase(known->second);
      known->second = place;
    }
    keys_.emplace(place, key);
  }

  // Returns whether `key` was present.
  bool Remove(const Key& key) {
    const auto known = places_.find(key);
    if (known == places_.end()) return false;
    keys_.erase(known->second);
    places_.erase(known);
    return true;
  }

  // Returns the earliest deadline; nothing if the queue is empty.
  std::optional<absl::Duration> NextDue() const {
    if (keys_.empty()) return std::nullopt;
    return keys_.begin()->first.first;
  }

  // Removes and returns the key with the earliest deadline if that is not after `now`. Keys with
  // the same deadline are returned in the order of Set.
  std::optional<Key> PopDue(absl::Duration now) {
    if (keys_.empty() || keys_.begin()->first.first > now) return std::nullopt;
    Key key = std::move(keys_.begin()->second);
    keys_.erase(keys_.begin());
    places_.erase(key);
    return key;
  }

  bool contains(const Key& key) const { return places_.contains(key); }
  size_t size() const { return places_.size(); }
  bool empty() const { return places_.empty(); }

 private:
  using Place = std::pair<absl::Duration, uint64_t>;  // the deadline and the number of its Set

  uint64_t last_number_ = 0;
  std::map<Place, Key> keys_;
  absl::flat_hash_map<Key, Place> places_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_BASE_DUE_QUEUE_H_
