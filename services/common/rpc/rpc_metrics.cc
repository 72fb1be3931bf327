#include "services/common/rpc/rpc_metrics.h"

#include <string>

#include "services/common/base/strings.h"

namespace muster {
namespace {

// All methods of this API times all codes, and some room.
constexpr size_t kMaxSeries = 1024;
constexpr size_t kMaxReasons = 16;
// All methods of this API, and some room.
constexpr size_t kMaxMethods = 128;

}  // namespace

RpcMetrics::RpcMetrics(Metrics& metrics)
    : calls_(metrics.AddCounters("muster_rpc_calls_total", "Calls that were answered.",
                                 {"method", "code"}, kMaxSeries)),
      seconds_(metrics.AddHistograms("muster_rpc_seconds",
                                     "How long calls took; of streams, how long they were open.",
                                     {"method"}, kMaxMethods, LatencyBounds())),
      refused_(metrics.AddCounters("muster_rpc_refused_total",
                                   "Calls refused before any handler, by identity or role.",
                                   {"code"}, kMaxSeries)),
      refused_handshakes_(metrics.AddCounters("muster_rpc_refused_handshakes_total",
                                              "TLS handshakes that failed.", {"reason"},
                                              kMaxReasons)),
      closed_connections_(metrics.AddCounters(
          "muster_rpc_closed_connections_total",
          "Connections that the service closed because of the behaviour of the peer.", {"reason"},
          kMaxReasons)) {
  // Shown before the first connection is closed.
  for (const char* reason : {"flood", "no_descriptor", "too_many", "too_many_frames"}) {
    closed_connections_.With({reason});
  }
}

void RpcMetrics::Count(std::string_view method, absl::StatusCode code, absl::Duration duration) {
  MutexLock lock(mutex_);
  auto it = by_method_.find(ToAbsl(method));
  if (it == by_method_.end()) it = by_method_.emplace(std::string(method), Series()).first;
  std::optional<Counter>& counter = it->second.by_code.at(static_cast<size_t>(code));
  if (!counter) counter = calls_.With({std::string(method), absl::StatusCodeToString(code)});
  counter->Add();
  std::optional<Histogram>& seconds = it->second.seconds;
  if (!seconds) seconds = seconds_.With({std::string(method)});
  seconds->Observe(absl::ToDoubleSeconds(duration));
}

void RpcMetrics::CountRefused(absl::StatusCode code) const {
  refused_.With({absl::StatusCodeToString(code)}).Add();
}

void RpcMetrics::CountRefusedHandshake(std::string_view reason) const {
  refused_handshakes_.With({std::string(reason)}).Add();
}

void RpcMetrics::CountClosedConnections(std::string_view reason, size_t number) const {
  closed_connections_.With({std::string(reason)}).Add(static_cast<double>(number));
}

}  // namespace muster
