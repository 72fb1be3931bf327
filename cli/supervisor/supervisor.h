// Keeps the services of one machine running, and the listening sockets of the gateway open.
//
// Its control socket (control_socket.h) accepts these requests, each as one line of JSON:
//   {"listen": "HOST:PORT", "name": NAME}   answers {"address": "HOST:PORT"} with the listening
//                                           socket attached, or {"error": ..., "reason": ...}
//   {"release": NAME}                       closes that socket; answers {"released": true|false}
//   {"status": true}                        answers {"services": [...]} (service.h), each with
//                                           "socket_open": whether a socket with the name of the
//                                           service is open
// A socket stays open as long as the supervisor runs, over every restart of the gateway.
// Connections of legacy clients wait in the kernel's queue meanwhile.
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
  absl::Duration drain = absl::Seconds(30);  // until a service that does not exit is killed
  int64_t log_limit = int64_t{64} << 20;     // bytes of each log file; one older file is kept
};

// Not thread-safe. The process must have no other threads while it runs.
class Supervisor {
 public:
  explicit Supervisor(SupervisorOptions options) : options_(std::move(options)) {}

  // Runs until SIGTERM or SIGINT, then stops every service. Takes over services that an earlier
  // supervisor left running. Returns FAILED_PRECONDITION (ALREADY_RUNNING) if another supervisor is
  // running.
  absl::Status Run();

 private:
  ControlAnswer HandleRequest(const std::string& line);
  ControlAnswer Listen(const std::string& name, const std::string& address);
  void StartFrom(size_t index);
  // `until`: by the monotonic clock.
  void StartNextWhenListening(size_t index, absl::Duration until);
  void RotateLogs();
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
