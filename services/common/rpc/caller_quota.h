// A resource that callers share, and its limits.
#ifndef MUSTER_SERVICES_COMMON_RPC_CALLER_QUOTA_H_
#define MUSTER_SERVICES_COMMON_RPC_CALLER_QUOTA_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "services/common/base/metrics.h"
#include "services/common/base/mutex.h"

namespace muster {

// Counts the reserved amounts, in all and of each caller, and enforces limits. Thread-safe. Must
// outlive its tickets.
class CallerQuota {
 public:
  // Zero: there is no limit.
  struct Limits {
    int64_t in_all = 0;
    int64_t of_caller = 0;
  };

  // `gauge` shows the reserved amount.
  explicit CallerQuota(std::optional<Gauge> gauge = std::nullopt) : gauge_(std::move(gauge)) {}

  // Holds a reserved amount for as long as it exists. Movable.
  class Ticket {
   public:
    Ticket() = default;
    Ticket(Ticket&& other) noexcept { *this = std::move(other); }
    Ticket& operator=(Ticket&& other) noexcept;
    ~Ticket() { Release(); }

   private:
    friend class CallerQuota;
    void Release();

    CallerQuota* quota_ = nullptr;
    std::string caller_;
    int64_t amount_ = 0;
  };

  enum class Verdict { kReserved, kFull, kCallerAtLimit };

  // Reserves `amount`, which is positive, for `caller` and sets `ticket`, unless a limit would be
  // exceeded. A caller without reservations may exceed its own limit.
  Verdict Reserve(std::string_view caller, int64_t amount, const Limits& limits, Ticket* ticket);

  // The same without limits: for what exists already.
  Ticket Charge(std::string_view caller, int64_t amount);

  int64_t reserved() const;

 private:
  void Release(const std::string& caller, int64_t amount);

  const std::optional<Gauge> gauge_;
  mutable Mutex mutex_;
  int64_t reserved_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::flat_hash_map<std::string, int64_t> of_caller_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_RPC_CALLER_QUOTA_H_
