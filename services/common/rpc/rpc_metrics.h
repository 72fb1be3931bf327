// Counters of calls.
#ifndef MUSTER_SERVICES_COMMON_RPC_RPC_METRICS_H_
#define MUSTER_SERVICES_COMMON_RPC_RPC_METRICS_H_

#include <string_view>

#include "absl/status/status.h"
#include "services/common/base/metrics.h"

namespace muster {

// Thread-safe. Labels are bounded: the methods of our services times the codes of gRPC.
class RpcMetrics {
 public:
  explicit RpcMetrics(Metrics& metrics);

  // A call that a handler answered. `method` is one of ours, not what a peer sent.
  void Count(std::string_view method, absl::StatusCode code) const;

  // A call that the gate refused before any handler.
  void CountRefused(absl::StatusCode code) const;

  // A handshake that failed: see HandshakeFailure.
  void CountRefusedHandshake(std::string_view reason) const;

 private:
  Labelled<Counter> calls_;
  Labelled<Counter> refused_;
  Labelled<Counter> refused_handshakes_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_RPC_RPC_METRICS_H_
