// How much disk the output of all jobs may take.
#ifndef MUSTER_SERVICES_AGENT_JOBS_SPOOL_QUOTA_H_
#define MUSTER_SERVICES_AGENT_JOBS_SPOOL_QUOTA_H_

#include <atomic>
#include <cstdint>

namespace muster {

// Thread-safe.
class SpoolQuota {
 public:
  explicit SpoolQuota(int64_t bytes) : left_(bytes) {}

  // False, and nothing is taken, if so much is not left.
  bool TryTake(int64_t bytes) {
    int64_t left = left_.load();
    while (left >= bytes) {
      if (left_.compare_exchange_weak(left, left - bytes)) return true;
    }
    return false;
  }

  // Of what is there already, even if it is more than is left.
  void Take(int64_t bytes) { left_ -= bytes; }

  void Give(int64_t bytes) { left_ += bytes; }

 private:
  std::atomic<int64_t> left_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_JOBS_SPOOL_QUOTA_H_
