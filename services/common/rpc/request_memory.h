// The memory of requests that are being handled.
#ifndef MUSTER_SERVICES_COMMON_RPC_REQUEST_MEMORY_H_
#define MUSTER_SERVICES_COMMON_RPC_REQUEST_MEMORY_H_

#include <cstdint>
#include <string_view>

#include "absl/status/statusor.h"
#include "services/common/rpc/caller_quota.h"
#include "services/common/rpc/limits.h"

namespace muster {

struct RequestMemoryLimits {
  int64_t in_all = kRequestBytes;
  int64_t of_caller = kRequestBytesOfCaller;
};

// Counts the bytes of large requests, from their arrival until their handler has taken them, and
// enforces limits: a request that waits for a thread holds its memory. The number that wait is
// the bound of small ones. Thread-safe. Must outlive its tickets.
class RequestMemory {
 public:
  explicit RequestMemory(RequestMemoryLimits limits = {})
      : limits_{limits.in_all, limits.of_caller} {}

  // Holds reserved bytes for as long as it exists. Movable.
  using Ticket = CallerQuota::Ticket;

  // Reserves `bytes`, which are positive, for a request of `caller` (HolderOf). RESOURCE_EXHAUSTED
  // (OVERLOADED, TOO_MANY_REQUEST_BYTES) at a limit. A caller without requests may exceed its own
  // limit.
  absl::StatusOr<Ticket> Reserve(std::string_view caller, int64_t bytes);

  int64_t reserved() const { return quota_.reserved(); }

 private:
  const CallerQuota::Limits limits_;
  CallerQuota quota_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_RPC_REQUEST_MEMORY_H_
