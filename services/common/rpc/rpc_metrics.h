// Counters and latencies of calls.
#ifndef MUSTER_SERVICES_COMMON_RPC_RPC_METRICS_H_
#define MUSTER_SERVICES_COMMON_RPC_RPC_METRICS_H_

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "services/common/base/metrics.h"
#include "services/common/base/mutex.h"

namespace muster {

// Thread-safe. Labels are bounded: the methods of our services times the codes of gRPC.
class RpcMetrics {
 public:
  explicit RpcMetrics(Metrics& metrics);

  // Records a call that a handler answered after `duration`; for a stream, the time that it was
  // open. `method` is one of this API, not the text of a peer.
  void Count(std::string_view method, absl::StatusCode code, absl::Duration duration);

  // Counts a call that the gate refused before any handler.
  void CountRefused(absl::StatusCode code) const;

  // Counts a failed handshake: see HandshakeFailure.
  void CountRefusedHandshake(std::string_view reason) const;

  // Counts connections that the service closed; `reason` is one of few words.
  void CountClosedConnections(std::string_view reason, size_t number) const;

 private:
  // The series of one method, looked up once because every call counts.
  struct Series {
    std::array<std::optional<Counter>, 17> by_code;
    std::optional<Histogram> seconds;
  };

  Labelled<Counter> calls_;
  Labelled<Histogram> seconds_;
  Labelled<Counter> refused_;
  Labelled<Counter> refused_handshakes_;
  Labelled<Counter> closed_connections_;
  Mutex mutex_;
  absl::flat_hash_map<std::string, Series> by_method_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_RPC_RPC_METRICS_H_
