// The stuck and the slow pairs of a plugin.
#ifndef MUSTER_SERVICES_STATUS_BOARD_PLUGIN_PACE_H_
#define MUSTER_SERVICES_STATUS_BOARD_PLUGIN_PACE_H_

#include <cstdint>
#include <deque>
#include <list>
#include <vector>

#include "absl/time/time.h"
#include "services/status/board/durations.h"
#include "services/status/board/reasons.h"

namespace muster {

struct Pair;
using PairList = std::list<Pair*>;

// Invariant: the list of moving pairs is ordered by their last movement, so the stuck pairs are at
// its front. Times are monotonic. Not thread-safe.
class PluginPace {
 public:
  // The progress of a pair, which has a Work, is another one than before.
  void Moved(Pair& pair, int64_t completed, absl::Duration now);

  // The heartbeats of the pair, which has a Work, resumed after a silence. The time without
  // movement starts again, if there was progress.
  void Resume(Pair& pair, absl::Duration now);

  // The pair has an outcome.
  void Finish(Pair& pair, absl::Duration now);

  // Removes and returns a pair without movement for stuck_after(); null if there is none. It is
  // returned again after its next movement.
  Pair* PopStuck(absl::Duration now);

  // Compares the rates of the pairs, also of those with an outcome. Returns the pending pairs whose
  // `slow` has changed. Reads each pair.
  std::vector<Pair*> Compare(std::deque<Pair>& pairs, absl::Duration now);

  // The longest time without movement that is not stuck. Compare updates it.
  absl::Duration stuck_after() const { return stuck_after_; }

 private:
  void Append(Pair& pair);
  void Remove(Pair& pair);

  PairList moving_;
  Durations steps_;
  absl::Duration stuck_after_ = kStuckAtLeast;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_STATUS_BOARD_PLUGIN_PACE_H_
