// The quota of disk space for the output of all jobs.
#ifndef MUSTER_SERVICES_AGENT_JOBS_SPOOL_QUOTA_H_
#define MUSTER_SERVICES_AGENT_JOBS_SPOOL_QUOTA_H_

#include <atomic>
#include <cstdint>

namespace muster {

// Thread-safe.
class SpoolQuota {
 public:
  explicit SpoolQuota(int64_t bytes) : left_(bytes) {}

  // Returns false, and reserves nothing, if less is left.
  bool TryReserve(int64_t bytes) {
    int64_t left = left_.load();
    while (left >= bytes) {
      if (left_.compare_exchange_weak(left, left - bytes)) return true;
    }
    return false;
  }

  // Reserves space that is already used, even if less is left.
  void Reserve(int64_t bytes) { left_ -= bytes; }

  void Release(int64_t bytes) { left_ += bytes; }

 private:
  std::atomic<int64_t> left_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_JOBS_SPOOL_QUOTA_H_
