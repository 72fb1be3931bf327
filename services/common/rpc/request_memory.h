// The memory of requests that are being handled.
#ifndef MUSTER_SERVICES_COMMON_RPC_REQUEST_MEMORY_H_
#define MUSTER_SERVICES_COMMON_RPC_REQUEST_MEMORY_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "services/common/base/mutex.h"
#include "services/common/rpc/limits.h"

namespace muster {

struct RequestMemoryLimits {
  int64_t in_all = kRequestBytes;
  int64_t of_caller = kRequestBytesOfCaller;
};

// Counts the bytes of large requests, from their arrival until they are answered, and enforces
// limits: a request that waits for a thread holds its memory. The number of requests that wait is
// the bound of small ones. Thread-safe. Must outlive its tickets.
class RequestMemory {
 public:
  explicit RequestMemory(RequestMemoryLimits limits = {}) : limits_(limits) {}

  // Holds reserved bytes for as long as it exists. Movable.
  class Ticket {
   public:
    Ticket() = default;
    Ticket(Ticket&& other) noexcept { *this = std::move(other); }
    Ticket& operator=(Ticket&& other) noexcept;
    ~Ticket() { Release(); }

   private:
    friend class RequestMemory;
    void Release();

    RequestMemory* memory_ = nullptr;
    std::string caller_;
    int64_t bytes_ = 0;
  };

  // Reserves `bytes` for a request of `caller`, a URI. RESOURCE_EXHAUSTED (OVERLOADED,
  // TOO_MANY_REQUEST_BYTES) at a limit. A caller without requests may exceed its own limit.
  absl::StatusOr<Ticket> Reserve(std::string_view caller, int64_t bytes);

  int64_t reserved() const;

 private:
  void Release(const std::string& caller, int64_t bytes);

  const RequestMemoryLimits limits_;
  mutable Mutex mutex_;
  int64_t reserved_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::flat_hash_map<std::string, int64_t> of_caller_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_RPC_REQUEST_MEMORY_H_
