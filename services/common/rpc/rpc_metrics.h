// Counters of calls.
#ifndef MUSTER_SERVICES_COMMON_RPC_RPC_METRICS_H_
#define MUSTER_SERVICES_COMMON_RPC_RPC_METRICS_H_

#include <string_view>

#include "absl/status/status.h"

namespace muster {

// Thread-safe. Labels are bounded: the methods of our services times the codes of gRPC.
class RpcMetrics {
 public:
  virtual ~RpcMetrics() = default;

  // A call that a handler answered.
  virtual void Count(std::string_view method, absl::StatusCode code) = 0;

  // A call that the gate refused.
  virtual void CountRefused(absl::StatusCode code) = 0;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_RPC_RPC_METRICS_H_
