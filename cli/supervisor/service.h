// One service that is kept running.
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
  std::string addresses_file;  // removed before each start: it speaks of the process before; or ""
};

struct RestartPolicy {
  absl::Duration first = absl::Milliseconds(200);
  absl::Duration longest = absl::Seconds(10);  // it doubles up to this
  // Begins at `first` again: who lived as long,
  absl::Duration settled = absl::Minutes(1);
  // or as long as this and had written its addresses, because it served.
  absl::Duration served = absl::Seconds(1);
};

// Starts the service's process, or takes over one that an earlier supervisor left running, and
// starts it again when it ends. Not thread-safe: it lives on its event loop.
class Service {
 public:
  Service(ServiceSpec spec, RestartPolicy policy, EventLoop& loop);
  ~Service();
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  void Start();

  // Asks the process to end (SIGTERM), kills it after `drain`, and then calls `on_stopped`. It does
  // not start again.
  void Stop(absl::Duration drain, std::function<void()> on_stopped);

  const std::string& name() const { return spec_.name; }
  const std::string& log_file() const { return spec_.log_file; }

  // {"name", "state": "running"|"waiting"|"stopped", "pid", "adopted", "restarts", "last_end"}
  nlohmann::ordered_json Describe() const;

 private:
  void Adopt(Process process);
  void Spawn();
  void WatchProcess();
  void OnEnd();
  void StartLater();
  bool Settled() const;

  const ServiceSpec spec_;
  const RestartPolicy policy_;
  EventLoop& loop_;
  std::optional<Process> process_;
  bool adopted_ = false;
  bool stopping_ = false;
  int restarts_ = 0;
  std::string last_end_;
  absl::Duration back_off_;
  absl::Duration started_at_;
  std::function<void()> on_stopped_;
};

}  // namespace muster::supervisor

#endif  // MUSTER_CLI_SUPERVISOR_SERVICE_H_
