// The main of every C++ service: arguments, configuration, log, start, stop, in this order.
#ifndef MUSTER_SERVICES_COMMON_SERVICE_SERVICE_MAIN_H_
#define MUSTER_SERVICES_COMMON_SERVICE_SERVICE_MAIN_H_

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "services/common/base/config.h"

namespace muster {

// The fields of a configuration file about the log.
struct LogConfig {
  std::string format = "text";
  std::string level = "info";
  std::string file;  // empty: stderr
};

// Binds log.format, log.level and log.file.
void BindLogConfig(LogConfig* log, Config* file);

// A service that serves from its making until Stop.
class RunningService {
 public:
  virtual ~RunningService() = default;

  // Refuses new work, finishes the running work within the configured time, and closes everything.
  virtual void Stop() = 0;
};

struct ServiceProgram {
  std::string name;     // "muster-aggregator"
  std::string summary;  // what it does, for --help: a sentence without its period
  // Adds the service's fields.
  std::function<void(Config*)> bind;
  LogConfig* log = nullptr;
  // Builds and starts the service. `fail` may be called later, from any thread, when it cannot
  // continue; the process then stops with exit code 1.
  std::function<absl::StatusOr<std::unique_ptr<RunningService>>(
      std::function<void(const absl::Status&)> fail)>
      start;
};

// Exit codes: 0 stopped when asked, 1 could not start or had to stop, 2 wrong arguments or
// configuration. Arguments: --config FILE, --print-config, --version, --help. Returns only if it
// has not started; the process ends here otherwise (exit_process.h).
int ServiceMain(int argc, char** argv, const ServiceProgram& program);

// Writes the addresses a service really took, {"name": "host:port", ...}, atomically. Nothing if
// `path` is empty.
absl::Status WriteAddresses(const std::string& path,
                            const std::map<std::string, std::string>& addresses);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_SERVICE_SERVICE_MAIN_H_
