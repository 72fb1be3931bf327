// The local address for progress reports of plugins, compatible with Sonobuoy's worker.
#ifndef MUSTER_SERVICES_AGENT_PROGRESS_ENDPOINT_H_
#define MUSTER_SERVICES_AGENT_PROGRESS_ENDPOINT_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "services/common/base/loopback_http_server.h"

namespace muster {

// The limit of a report in bytes.
inline constexpr size_t kMaxProgressBody = size_t{1} << 20;

// The response to a plugin.
struct ProgressAnswer {
  int code = 200;
  std::string body;
};

// Forwards a report. Called from several threads.
using ProgressRelay = std::function<ProgressAnswer(const std::string& body)>;

// Plain HTTP on the loopback address only, path /progress, any method: passes the body to `relay`
// and returns its response. A body above 1 MiB is answered with 413. Thread-safe.
class ProgressEndpoint {
 public:
  // Port 0: any free port. Fails with UNAVAILABLE (PORT_IN_USE) if another program uses the port.
  // The destructor waits for reports that are being forwarded.
  static absl::StatusOr<std::unique_ptr<ProgressEndpoint>> Start(uint16_t port,
                                                                 const ProgressRelay& relay);

  uint16_t port() const { return server_->port(); }

 private:
  explicit ProgressEndpoint(std::unique_ptr<LoopbackHttpServer> server);

  const std::unique_ptr<LoopbackHttpServer> server_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_PROGRESS_ENDPOINT_H_
