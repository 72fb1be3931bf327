// The HTTP server of a program for its operator's tools, on the loopback address.
#ifndef MUSTER_SERVICES_COMMON_BASE_INSPECTION_SERVER_H_
#define MUSTER_SERVICES_COMMON_BASE_INSPECTION_SERVER_H_

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "services/common/base/loopback_http_server.h"
#include "services/common/base/metrics.h"

namespace muster {

// GET /metrics (Prometheus text), /livez and /readyz: 200 "ok", or 503 with the reason. Listens on
// 127.0.0.1 until destroyed. Thread-safe.
class InspectionServer {
 public:
  struct Options {
    uint16_t port = 0;  // 0: any free one
    // Asked on the server's own threads for each request; an error is the answer 503. Must not
    // block. An empty one is always OK.
    std::function<absl::Status()> live;
    std::function<absl::Status()> ready;
  };

  // `metrics` must outlive the server. UNAVAILABLE (PORT_IN_USE) if the port cannot be had.
  static absl::StatusOr<std::unique_ptr<InspectionServer>> Start(const Metrics& metrics,
                                                                 Options options);

  uint16_t port() const { return server_->port(); }

 private:
  explicit InspectionServer(std::unique_ptr<LoopbackHttpServer> server);

  const std::unique_ptr<LoopbackHttpServer> server_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_BASE_INSPECTION_SERVER_H_
