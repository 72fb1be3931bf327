// The watchers of jobs.
#ifndef MUSTER_SERVICES_RELAY_JOBS_JOB_WATCHERS_H_
#define MUSTER_SERVICES_RELAY_JOBS_JOB_WATCHERS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "services/common/base/mutex.h"

namespace muster {

// Thread-safe. Calls watchers without a lock, so a watcher may be called once more after Remove.
class JobWatchers {
 public:
  uint64_t Add(const std::string& job, std::function<void()> wake) {
    MutexLock lock(mutex_);
    watchers_[job][++last_] = std::move(wake);
    return last_;
  }

  void Remove(const std::string& job, uint64_t watcher) {
    MutexLock lock(mutex_);
    const auto found = watchers_.find(job);
    if (found == watchers_.end()) return;
    found->second.erase(watcher);
    if (found->second.empty()) watchers_.erase(found);
  }

  void Wake(const std::string& job) {
    std::vector<std::function<void()>> calls;
    {
      MutexLock lock(mutex_);
      const auto found = watchers_.find(job);
      if (found == watchers_.end()) return;
      for (const auto& [id, wake] : found->second) calls.push_back(wake);
    }
    for (const auto& call : calls) call();
  }

  bool Any(const std::string& job) const {
    MutexLock lock(mutex_);
    return watchers_.contains(job);
  }

 private:
  mutable Mutex mutex_;
  std::map<std::string, std::map<uint64_t, std::function<void()>>> watchers_
      ABSL_GUARDED_BY(mutex_);
  uint64_t last_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_JOBS_JOB_WATCHERS_H_
