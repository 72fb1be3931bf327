// The local address at which plugins report progress, as Sonobuoy's worker offers it.
#ifndef MUSTER_SERVICES_AGENT_PROGRESS_ENDPOINT_H_
#define MUSTER_SERVICES_AGENT_PROGRESS_ENDPOINT_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace muster {

// The largest report that is taken, in bytes.
inline constexpr size_t kMaxProgressBody = size_t{1} << 20;

// An HTTP response to a plugin.
struct ProgressAnswer {
  int code = 200;
  std::string body;
};

// Passes a report on. Called from several threads.
using ProgressRelay = std::function<ProgressAnswer(const std::string& body)>;

// Serves plain HTTP on the loopback address, at /progress, for any method: passes the body to
// `relay` and returns its answer. A body above 1 MiB gets status 413. The server blocks, so it has
// a thread. Thread-safe.
class ProgressEndpoint {
 public:
  // Port 0: any free one. UNAVAILABLE (PORT_IN_USE) if another program has the port.
  static absl::StatusOr<std::unique_ptr<ProgressEndpoint>> Start(uint16_t port,
                                                                 ProgressRelay relay);
  // Waits for reports that are being passed on.
  ~ProgressEndpoint();

  ProgressEndpoint(const ProgressEndpoint&) = delete;
  ProgressEndpoint& operator=(const ProgressEndpoint&) = delete;

  uint16_t port() const;

 private:
  struct State;
  explicit ProgressEndpoint(std::unique_ptr<State> state);
  const std::unique_ptr<State> state_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_PROGRESS_ENDPOINT_H_
