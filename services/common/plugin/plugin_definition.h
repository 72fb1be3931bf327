// A plugin's definition, in Sonobuoy's YAML format.
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

// The program that produces a plugin's result.
enum class PluginKind {
  kContainer,  // spec or podSpec names an image: a sidecar delivers
  kExec,       // spec has a command or args and no image: the agent runs it on the node
  kModule,     // neither: the agent's module with the plugin's name
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

  std::string image;  // of spec; may be empty
  std::vector<std::string> command;
  std::vector<std::string> args;
  std::vector<std::pair<std::string, std::string>> env;  // variables with a value, in order
  std::map<std::string, std::string> config_map;         // file name to content

  std::string yaml;  // unchanged
};

inline constexpr size_t kMaxPluginDefinition = size_t{1} << 20;  // bytes

// Parses a definition of at most 1 MiB; `file` is its name in messages. Fails with INVALID_ARGUMENT
// (INVALID_PLUGIN) and lists every mistake, one line each: "file:line: field: fault". Mistakes are
// missing fields, wrong types, and unknown keys (the message suggests the nearest known key).
// Unknown keys of a container with an image and within other objects of Kubernetes are accepted.
// Names must satisfy ValidateName; "sonobuoy" is reserved.
absl::StatusOr<PluginDefinition> ParsePluginDefinition(std::string_view yaml,
                                                       std::string_view file);

// Checks that a plugin may have this name. Fails with INVALID_NAME as ValidateName does, or
// INVALID_PLUGIN.
absl::Status ValidatePluginName(std::string_view name);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_PLUGIN_PLUGIN_DEFINITION_H_
