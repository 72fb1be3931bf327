// Keeps the services of one machine running, and the doors of the gateway open meanwhile.
//
// Its control socket (control_socket.h) takes, each as one line of JSON:
//   {"listen": "HOST:PORT", "name": NAME}   answers {"address": "HOST:PORT"} with the listening
//                                           socket attached, or {"error": ..., "reason": ...}
//   {"release": NAME}                       closes that socket; answers {"released": true|false}
//   {"status": true}                        answers {"services": [...]} (service.h)
// A socket lives as long as the supervisor, over every restart of the gateway: an old client's
// connection waits in the kernel instead of being refused.
#ifndef MUSTER_CLI_SUPERVISOR_SUPERVISOR_H_
#define MUSTER_CLI_SUPERVISOR_SUPERVISOR_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "cli/supervisor/control_socket.h"
#include "cli/supervisor/event_loop.h"
#include "cli/supervisor/listening_sockets.h"
#include "cli/supervisor/service.h"

namespace muster::supervisor {

struct SupervisorOptions {
  std::string lock_file;
  std::string socket;
  std::vector<ServiceSpec> services;  // in the order of their start; they stop in reverse
  RestartPolicy restart;
  absl::Duration drain = absl::Seconds(30);  // of each service, before it is killed
  int64_t log_limit = int64_t{64} << 20;     // bytes of each log file; one older is kept
};

// Not thread-safe; the process has no other threads while it runs.
class Supervisor {
 public:
  explicit Supervisor(SupervisorOptions options) : options_(std::move(options)) {}

  // Until SIGTERM or SIGINT, then until every service has ended. Services that an earlier
  // supervisor left running are taken over. FAILED_PRECONDITION (ALREADY_RUNNING) if another one
  // runs.
  absl::Status Run();

 private:
  ControlAnswer Answer(const std::string& line);
  ControlAnswer Listen(const std::string& name, const std::string& address);
  void StartFrom(size_t index);
  void AwaitThenStart(size_t index, absl::Time until);
  void BoundLogs();
  void BeginStop();
  void StopFrom(size_t index);

  const SupervisorOptions options_;
  EventLoop loop_;
  ListeningSockets sockets_;
  std::vector<std::unique_ptr<Service>> services_;
  bool stopping_ = false;
};

}  // namespace muster::supervisor

#endif  // MUSTER_CLI_SUPERVISOR_SUPERVISOR_H_
