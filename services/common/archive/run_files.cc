#include "services/common/archive/run_files.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_join.h"
#include "services/common/archive/json_text.h"
#include "services/common/archive/yaml_tree.h"

namespace muster {
namespace {

using Json = nlohmann::ordered_json;

// The release of Sonobuoy that defines this layout.
constexpr char kLayoutVersion[] = "v0.57.5";

std::string Text(const Json& value) { return JsonText(value, 2) + "\n"; }

}  // namespace

std::string ConfigJson(const ArchiveRun& run) {
  Json plugins = Json::array();
  for (const ArchivePlugin& plugin : run.plugins) plugins.push_back({{"name", plugin.name}});
  return Text({{"Description", run.title},
               {"UUID", run.id},
               {"Version", kLayoutVersion},
               {"MusterVersion", run.muster_version},
               {"ResultsDir", ""},
               {"Resources", Json::array()},
               {"Filters", {{"Namespaces", ""}, {"LabelSelector", ""}}},
               {"Server",
                {{"advertiseaddress", absl::StrJoin(run.advertised_hosts, ",")},
                 {"timeoutseconds", absl::ToInt64Seconds(run.timeout)}}},
               {"Plugins", plugins},
               {"PluginSearchPath", Json::array()},
               {"Namespace", ""}});
}

std::string InfoJson(const ArchiveRun& run) {
  Json plugins = Json::array();
  for (const ArchivePlugin& plugin : run.plugins) plugins.push_back(plugin.name);
  return Text({{"plugins", plugins}});
}

std::string QueryTimeJson() { return "[]\n"; }

std::string ClusterHealthJson() {
  const Json none = {{"total_nodes", 0}, {"healthy_nodes", 0}};
  return Text({{"node_health", none},
               {"pod_health", none},
               {"api_version", "none (a Muster run asks no cluster)"},
               {"error_summary", Json::object()}});
}

std::string DefinitionJson(const ArchivePlugin& plugin) {
  const absl::StatusOr<Json> definition = ParseYamlTree(plugin.definition_yaml);
  return Text(definition.ok() ? *definition : Json(plugin.definition_yaml));
}

}  // namespace muster
