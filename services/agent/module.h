// The ways in which an agent produces a result: one interface, and one file each in modules/.
#ifndef MUSTER_SERVICES_AGENT_MODULE_H_
#define MUSTER_SERVICES_AGENT_MODULE_H_

#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "services/common/plugin/plugin_definition.h"

namespace muster {

// The input of a module.
struct ModuleContext {
  std::string run;
  std::string plugin;
  std::string node;
  // The module's own folder for its results: it exists and is empty (for `wait`: another process
  // writes there).
  std::string results_dir;
  // A folder for whatever else it needs, removed afterwards; it exists and is empty.
  std::string scratch_dir;
  // The definition of the plugin; with empty names if there is none.
  PluginDefinition definition;
  // How long a done file has to exist before it counts.
  absl::Duration done_file_delay;
  // How long the module may take.
  absl::Duration time_limit;
  // Where on the loopback address the plugin may report progress; 0: nowhere.
  uint16_t progress_port = 0;
  // How much it may write, where it can choose.
  int64_t max_output_bytes = 0;
};

// The result that a module made.
struct ModuleResult {
  std::string path;        // in results_dir
  std::string media_type;  // empty: by the ending
};

// Produces one result as a file. A module never opens a connection: delivery is not its work.
class Module {
 public:
  virtual ~Module() = default;

  // Blocks. An error is the reason why there is no result, for people to read: it is delivered in
  // place of the result. CANCELLED soon after `stop`, and nothing it started runs on.
  virtual absl::StatusOr<ModuleResult> Run(const ModuleContext& context,
                                           const std::stop_token& stop) = 0;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_MODULE_H_
