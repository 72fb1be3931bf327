// The memory of answers that peers have not taken yet.
#ifndef MUSTER_SERVICES_COMMON_RPC_ANSWER_MEMORY_H_
#define MUSTER_SERVICES_COMMON_RPC_ANSWER_MEMORY_H_

#include <cstdint>
#include <string_view>

#include "absl/status/statusor.h"
#include "services/common/base/metrics.h"
#include "services/common/rpc/caller_quota.h"
#include "services/common/rpc/limits.h"

namespace muster {

struct AnswerMemoryLimits {
  int64_t in_all = kAnswerBytes;
  int64_t of_caller = kAnswerBytesOfCaller;
};

// Counts the bytes of answers, from the end of their handlers until the peers have taken them or
// the calls are over, and enforces limits: gRPC holds an answer for as long as its peer grants no
// HTTP/2 window. Thread-safe. Must outlive its tickets.
class AnswerMemory {
 public:
  explicit AnswerMemory(Metrics& metrics, AnswerMemoryLimits limits = {});

  // Holds reserved bytes for as long as it exists. Movable.
  using Ticket = CallerQuota::Ticket;

  // Reserves `bytes`, which are positive, for an answer to `caller` (HolderOf). RESOURCE_EXHAUSTED
  // (OVERLOADED, TOO_MANY_ANSWER_BYTES) at a limit. A caller without answers may exceed its own
  // limit.
  absl::StatusOr<Ticket> Reserve(std::string_view caller, int64_t bytes);

  // Counts `bytes` beyond the limits too: the call of the answer has taken effect.
  Ticket Charge(std::string_view caller, int64_t bytes) { return quota_.Charge(caller, bytes); }

  int64_t reserved() const { return quota_.reserved(); }

 private:
  const CallerQuota::Limits limits_;
  CallerQuota quota_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_RPC_ANSWER_MEMORY_H_
