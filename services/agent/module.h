// The interface of modules, which produce results. Each is one file in modules/.
#ifndef MUSTER_SERVICES_AGENT_MODULE_H_
#define MUSTER_SERVICES_AGENT_MODULE_H_

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "services/common/plugin/plugin_definition.h"

namespace muster {

// The environment of a module.
struct ModuleContext {
  std::string run;
  std::string plugin;
  std::string node;
  // The module's folder for its results. It exists and is empty; for `wait` another process writes
  // there.
  std::string results_dir;
  // A folder for temporary files, removed afterwards. It exists and is empty.
  std::string scratch_dir;
  // The definition of the plugin; with empty names if there is none.
  PluginDefinition definition;
  // How long a done file has to exist before it counts.
  absl::Duration done_file_delay;
  // The time limit of the module.
  absl::Duration time_limit;
  // The loopback port for progress reports of the plugin; 0: none.
  uint16_t progress_port = 0;
  // The output limit of modules that can limit it.
  int64_t max_output_bytes = 0;
  // Receives the id of the plugin's process before its program starts (SubprocessOptions).
  std::function<absl::Status(pid_t)> before_start;
};

// The result that a module made.
struct ModuleResult {
  std::string path;        // in results_dir
  std::string media_type;  // empty: by the ending
};

// Produces one result as a file. A module opens no connection and does not deliver.
class Module {
 public:
  virtual ~Module() = default;

  // Blocks. The text of an error is delivered in place of the result, for humans. After `stop` it
  // soon fails with CANCELLED and leaves no process running.
  virtual absl::StatusOr<ModuleResult> Run(const ModuleContext& context,
                                           const std::stop_token& stop) = 0;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_MODULE_H_
