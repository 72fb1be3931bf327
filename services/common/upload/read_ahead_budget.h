// The memory that upload streams share for chunks they read before the previous one is stored.
#ifndef MUSTER_SERVICES_COMMON_UPLOAD_READ_AHEAD_BUDGET_H_
#define MUSTER_SERVICES_COMMON_UPLOAD_READ_AHEAD_BUDGET_H_

#include <atomic>
#include <cstdint>

namespace muster {

// Bytes that streams may hold beyond one chunk each. Thread-safe.
class ReadAheadBudget {
 public:
  explicit ReadAheadBudget(int64_t bytes) : left_(bytes) {}

  // Returns false if fewer than `bytes` are left.
  bool TryReserve(int64_t bytes) {
    if (left_.fetch_sub(bytes) >= bytes) return true;
    left_ += bytes;
    return false;
  }
  void Release(int64_t bytes) { left_ += bytes; }

  int64_t left() const { return left_; }

 private:
  std::atomic<int64_t> left_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_UPLOAD_READ_AHEAD_BUDGET_H_
