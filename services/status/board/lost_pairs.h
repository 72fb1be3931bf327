// The pending pairs of a run whose sender is silent, and the verdicts on the lost ones.
#ifndef MUSTER_SERVICES_STATUS_BOARD_LOST_PAIRS_H_
#define MUSTER_SERVICES_STATUS_BOARD_LOST_PAIRS_H_

#include <string>

#include "absl/time/time.h"
#include "services/common/base/due_queue.h"
#include "services/status/board/pair.h"
#include "services/status/board/reasons.h"
#include "services/status/board/verdict_log.h"

namespace muster {

// Invariant: the verdict on a pair stands exactly while its `work->lost` is set. A silent pair
// waits in a due queue for the end of lost_after, so a tick costs nothing for the other pairs. Not
// thread-safe.
class LostPairs {
 public:
  // `verdicts` outlives this object.
  LostPairs(std::string run, VerdictLog& verdicts) : run_(std::move(run)), verdicts_(verdicts) {}

  // Sets after how much silence a pair is lost; infinite: never, as in a run that has ended.
  // Returns whether that changed: then Update has to be called for each pair.
  bool SetLostAfter(absl::Duration lost_after);
  absl::Duration lost_after() const { return lost_after_; }

  // The facts of the pair may have changed. Withdraws the verdict if the pair is not lost any more.
  void Update(Pair& pair, absl::Duration now);

  // Adds verdicts on the pairs that are due.
  void Tick(const Moment& now);

  size_t waiting() const { return due_.size(); }

 private:
  void Withdraw(Pair& pair);

  const std::string run_;
  VerdictLog& verdicts_;
  absl::Duration lost_after_ = absl::InfiniteDuration();
  DueQueue<Pair*> due_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_STATUS_BOARD_LOST_PAIRS_H_
