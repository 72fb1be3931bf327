// A supervised service.
#ifndef MUSTER_CLI_SUPERVISOR_SERVICE_H_
#define MUSTER_CLI_SUPERVISOR_SERVICE_H_

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "cli/supervisor/event_loop.h"
#include "cli/supervisor/process.h"

namespace muster::supervisor {

struct ServiceSpec {
  std::string name;
  std::vector<std::string> argv;  // argv[0] is the program's path
  std::string log_file;
  std::string pid_file;
  std::string addresses_file;  // removed before each start; may be empty
};

struct RestartPolicy {
  absl::Duration first = absl::Milliseconds(200);
  absl::Duration longest = absl::Seconds(10);  // the pause doubles up to this
  // The pause is reset to `first` if the process ran for `settled`, or if it ran for `served` and
  // wrote its addresses file.
  absl::Duration settled = absl::Minutes(1);
  absl::Duration served = absl::Seconds(1);
};

// Starts the process of a service, or takes over a process of an earlier supervisor, and restarts
// it when it exits. Not thread-safe: use it only on the thread of its event loop.
class Service {
 public:
  Service(ServiceSpec spec, RestartPolicy policy, EventLoop& loop);
  ~Service();
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  void Start();

  // Sends SIGTERM, and SIGKILL after `drain`. Calls `on_stopped` when the process has ended. It is
  // not restarted.
  void Stop(absl::Duration drain, std::function<void()> on_stopped);

  const std::string& name() const { return spec_.name; }
  const std::string& log_file() const { return spec_.log_file; }

  // {"name", "state": "running"|"waiting"|"stopped", "pid", "adopted", "restarts", "last_exit"}
  nlohmann::ordered_json Describe() const;

 private:
  void Adopt(Process process);
  void Spawn();
  void WatchProcess();
  void OnExit();
  void ScheduleRestart();
  bool IsSettled() const;

  const ServiceSpec spec_;
  const RestartPolicy policy_;
  EventLoop& loop_;
  std::optional<Process> process_;
  bool adopted_ = false;
  bool stopping_ = false;
  int restarts_ = 0;
  std::string last_exit_;
  absl::Duration back_off_;
  absl::Duration started_at_;
  std::function<void()> on_stopped_;
};

}  // namespace muster::supervisor

#endif  // MUSTER_CLI_SUPERVISOR_SERVICE_H_
