// The progress of the pairs of a run that is not stored yet.
#ifndef MUSTER_SERVICES_STATUS_BOARD_NEW_PROGRESS_H_
#define MUSTER_SERVICES_STATUS_BOARD_NEW_PROGRESS_H_

#include <string>
#include <utility>
#include <vector>

#include "muster/v1/status.pb.h"
#include "services/status/board/pair.h"

namespace muster {

// Invariant: a pair is in the list exactly while its `work->unsaved` is set. Not thread-safe.
class NewProgress {
 public:
  // The progress of the pair, which has a Work, has changed.
  void Add(Pair& pair);

  // Removes all. Returns the progress of those that are still pending.
  std::vector<std::pair<v1::ResultKey, v1::Progress>> Drain(const std::string& run);

 private:
  std::vector<Pair*> pairs_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_STATUS_BOARD_NEW_PROGRESS_H_
