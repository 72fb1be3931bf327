// A plugin's definition: Sonobuoy's YAML, as it is.
//
//   sonobuoy-config:
//     driver: DaemonSet            # or Job: it runs once, for the node "global"
//     plugin-name: disk-check
//     result-format: raw           # junit (also called e2e), gojson, manual; anything else is raw
//   spec:                          # a Kubernetes container; without an image: run on the node
//     command: [/usr/local/bin/disk-check]
//     args: [--all]
//     env: [{name: LEVEL, value: "2"}]
//
// Further keys: result-files, order, skip-cleanup, description, source-url and the old result-type
// (ignored) in sonobuoy-config; podSpec, extra-volumes and config-map beside it.
#ifndef MUSTER_SERVICES_COMMON_PLUGIN_PLUGIN_DEFINITION_H_
#define MUSTER_SERVICES_COMMON_PLUGIN_PLUGIN_DEFINITION_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace muster {

// Who does a plugin's work.
enum class PluginKind {
  kContainer,  // spec or podSpec names an image: a sidecar delivers
  kExec,       // spec has a command or args and no image: the agent runs it on the node
  kModule,     // neither: a module of the agent that has the plugin's name
};

struct PluginDefinition {
  std::string name;
  bool once = false;  // driver Job; else DaemonSet, on each node
  PluginKind kind = PluginKind::kModule;
  std::string result_format = "raw";  // junit, gojson, manual or raw
  std::vector<std::string> result_files;
  int64_t order = 0;  // plugins of a lower order end before those of a higher one start
  bool skip_cleanup = false;
  std::string description;
  std::string source_url;

  std::string image;  // of spec; empty if it has none
  std::vector<std::string> command;
  std::vector<std::string> args;
  std::vector<std::pair<std::string, std::string>> env;  // those with a value, in order
  std::map<std::string, std::string> config_map;         // file name to content

  std::string yaml;  // as given, verbatim
};

inline constexpr size_t kMaxPluginDefinition = size_t{1} << 20;  // bytes

// Reads a definition of at most 1 MiB; `file` is its name in messages. INVALID_ARGUMENT with reason
// INVALID_PLUGIN lists every mistake, a line each: "file:line: field: what is wrong". A mistake is
// what is missing or of another type, and a key that is unknown at the top or in sonobuoy-config
// (the nearest known one is named). Keys within Kubernetes' objects are Kubernetes' affair. Names
// are as ValidateName wants them, and "sonobuoy" is taken.
absl::StatusOr<PluginDefinition> ParsePluginDefinition(std::string_view yaml,
                                                       std::string_view file);

// Why no plugin may be called `name`, or OK. INVALID_NAME as ValidateName, or INVALID_PLUGIN.
absl::Status ValidatePluginName(std::string_view name);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_PLUGIN_PLUGIN_DEFINITION_H_
