// Counters of calls.
#ifndef MUSTER_SERVICES_COMMON_RPC_RPC_METRICS_H_
#define MUSTER_SERVICES_COMMON_RPC_RPC_METRICS_H_

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "services/common/base/metrics.h"
#include "services/common/base/mutex.h"

namespace muster {

// Thread-safe. Labels are bounded: the methods of our services times the codes of gRPC.
class RpcMetrics {
 public:
  explicit RpcMetrics(Metrics& metrics);

  // A call that a handler answered. `method` is one of ours, not what a peer sent.
  void Count(std::string_view method, absl::StatusCode code);

  // A call that the gate refused before any handler.
  void CountRefused(absl::StatusCode code) const;

  // A handshake that failed: see HandshakeFailure.
  void CountRefusedHandshake(std::string_view reason) const;

 private:
  // Of one method, by code: found once, since every call counts.
  using Counters = std::array<std::optional<Counter>, 17>;

  Labelled<Counter> calls_;
  Labelled<Counter> refused_;
  Labelled<Counter> refused_handshakes_;
  Mutex mutex_;
  absl::flat_hash_map<std::string, Counters> by_method_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_RPC_RPC_METRICS_H_
