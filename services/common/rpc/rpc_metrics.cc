#include "services/common/rpc/rpc_metrics.h"

#include <string>

namespace muster {
namespace {

// All methods of this API times all codes, and some room.
constexpr size_t kMaxSeries = 1024;

}  // namespace

RpcMetrics::RpcMetrics(Metrics& metrics)
    : calls_(metrics.AddCounters("muster_rpc_calls_total", "Calls that were answered.",
                                 {"method", "code"}, kMaxSeries)),
      refused_(metrics.AddCounters("muster_rpc_refused_total",
                                   "Calls refused before any handler, by identity or role.",
                                   {"code"}, kMaxSeries)) {}

void RpcMetrics::Count(std::string_view method, absl::StatusCode code) const {
  calls_.With({std::string(method), absl::StatusCodeToString(code)}).Add();
}

void RpcMetrics::CountRefused(absl::StatusCode code) const {
  refused_.With({absl::StatusCodeToString(code)}).Add();
}

}  // namespace muster
