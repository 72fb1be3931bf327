// The pairs of a run in the order of their latest change.
#ifndef MUSTER_SERVICES_STATUS_BOARD_PAIR_CHANGE_LOG_H_
#define MUSTER_SERVICES_STATUS_BOARD_PAIR_CHANGE_LOG_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "services/status/board/pair.h"

namespace muster {

// Versions of a run: each change of a pair, and of the run itself, has the next number. The log
// holds at most about two entries a pair, so a watcher needs no more than its position. Not
// thread-safe.
class PairChangeLog {
 public:
  // Gives the pair the next version. `pair_count` is the number of pairs of the run.
  void Append(Pair& pair, size_t pair_count);

  // Counts a change of the run itself.
  void Skip() { ++version_; }

  uint64_t version() const { return version_; }
  size_t size() const { return entries_.size(); }

  // Calls `visit` with the pairs whose latest change is after version `after`, the oldest change
  // first, until `visit` returns false, `limit` entries were read, or version `until` is reached.
  // Returns the version up to which all were visited; `until` at the end.
  uint64_t Visit(uint64_t after, uint64_t until, int limit,
                 const std::function<bool(const Pair&)>& visit) const;

 private:
  struct Entry {
    uint64_t version;
    const Pair* pair;
  };

  std::vector<Entry> entries_;  // ascending; an entry is obsolete once its pair has changed again
  uint64_t version_ = 0;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_STATUS_BOARD_PAIR_CHANGE_LOG_H_
