// Counts the readers of runs.
#ifndef MUSTER_SERVICES_AGGREGATOR_RUNS_RUN_READERS_H_
#define MUSTER_SERVICES_AGGREGATOR_RUNS_RUN_READERS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "services/common/base/mutex.h"

namespace muster {

// The streams that read a result or the archive of a run: retention deletes the run after them.
// Outlives its holds. Thread-safe.
class RunReaders {
 public:
  using Hold = std::shared_ptr<void>;

  // Counts a reader for as long as the hold exists.
  Hold Add(const std::string& run) {
    {
      MutexLock lock(mutex_);
      ++readers_[run];
    }
    return Hold(this, [this, run](void*) { Remove(run); });
  }

  bool Has(const std::string& run) const {
    MutexLock lock(mutex_);
    return readers_.contains(run);
  }

 private:
  void Remove(const std::string& run) {
    MutexLock lock(mutex_);
    const auto it = readers_.find(run);
    if (--it->second == 0) readers_.erase(it);
  }

  mutable Mutex mutex_;
  std::map<std::string, int64_t> readers_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGGREGATOR_RUNS_RUN_READERS_H_
