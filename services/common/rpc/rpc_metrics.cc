#include "services/common/rpc/rpc_metrics.h"

#include <string>

#include "services/common/base/strings.h"

namespace muster {
namespace {

// All methods of this API times all codes, and some room.
constexpr size_t kMaxSeries = 1024;
constexpr size_t kMaxReasons = 16;

}  // namespace

RpcMetrics::RpcMetrics(Metrics& metrics)
    : calls_(metrics.AddCounters("muster_rpc_calls_total", "Calls that were answered.",
                                 {"method", "code"}, kMaxSeries)),
      refused_(metrics.AddCounters("muster_rpc_refused_total",
                                   "Calls refused before any handler, by identity or role.",
                                   {"code"}, kMaxSeries)),
      refused_handshakes_(metrics.AddCounters("muster_rpc_refused_handshakes_total",
                                              "TLS handshakes that failed.", {"reason"},
                                              kMaxReasons)) {}

void RpcMetrics::Count(std::string_view method, absl::StatusCode code) {
  MutexLock lock(mutex_);
  auto it = by_method_.find(ToAbsl(method));
  if (it == by_method_.end()) it = by_method_.emplace(std::string(method), Counters()).first;
  std::optional<Counter>& counter = it->second.at(static_cast<size_t>(code));
  if (!counter) counter = calls_.With({std::string(method), absl::StatusCodeToString(code)});
  counter->Add();
}

void RpcMetrics::CountRefused(absl::StatusCode code) const {
  refused_.With({absl::StatusCodeToString(code)}).Add();
}

void RpcMetrics::CountRefusedHandshake(std::string_view reason) const {
  refused_handshakes_.With({std::string(reason)}).Add();
}

}  // namespace muster
