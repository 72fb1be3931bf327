#include "services/aggregator/runs/plan.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "services/common/base/names.h"
#include "services/common/base/new_name.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/runs.h"
#include "services/common/plugin/plugin_definition.h"

namespace muster {
namespace {

// The definition of a built-in module of the agent.
struct BuiltIn {
  std::string_view name;
  std::string_view yaml;
};

constexpr std::array kBuiltIns = {
    BuiltIn{"hostfacts",
            "sonobuoy-config:\n  driver: DaemonSet\n  plugin-name: hostfacts\n"
            "  result-format: raw\n  description: Ansible's facts of the node, as JSON\n"
            "spec:\n  name: plugin\n"},
    BuiltIn{"systemd-logs",
            "sonobuoy-config:\n  driver: DaemonSet\n  plugin-name: systemd-logs\n"
            "  result-format: raw\n  description: the node's journal, as JSON lines\n"
            "spec:\n  name: plugin\n"},
};

bool IsName(std::string_view text) { return text.find_first_of(":\n") == std::string_view::npos; }

absl::StatusOr<std::string> DefinitionOf(const std::string& plugin) {
  if (!IsName(plugin)) return plugin;
  if (plugin.empty()) return errors::InvalidPlugin("\"\"", "it is empty");
  for (const BuiltIn& built_in : kBuiltIns) {
    if (built_in.name == plugin) return std::string(built_in.yaml);
  }
  return errors::InvalidPlugin(absl::StrCat("\"", plugin.substr(0, kMaxName), "\""),
                               "the built-in plugins are hostfacts and systemd-logs");
}

absl::StatusOr<PluginRecord> ToRecord(const std::string& plugin, size_t index) {
  ASSIGN_OR_RETURN(const auto yaml, DefinitionOf(plugin));
  ASSIGN_OR_RETURN(const auto definition,
                   ParsePluginDefinition(yaml, absl::StrCat("plugins[", index, "]")));
  RETURN_IF_ERROR(ValidateNewName("plugin", definition.name));
  PluginRecord record;
  record.name = definition.name;
  record.once = definition.once;
  record.has_image = definition.kind == PluginKind::kContainer;
  record.result_format = definition.result_format;
  record.definition_yaml = yaml;
  return record;
}

absl::Status CheckNodes(const std::vector<std::string>& nodes) {
  if (nodes.size() > kMaxNodes) {
    return errors::PlanTooLarge(static_cast<int64_t>(nodes.size()), kMaxNodes);
  }
  std::set<std::string_view> seen;
  for (const std::string& node : nodes) {
    RETURN_IF_ERROR(ValidateNewName("node", node));
    if (node == "global") {
      return errors::GlobalIsNoNode();
    }
    if (!seen.insert(node).second) {
      return errors::NodeNamedTwice(node);
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Plan> MakePlan(const std::vector<std::string>& plugins,
                              const std::vector<std::string>& nodes) {
  if (plugins.size() > kMaxPlugins) {
    return errors::PlanTooLarge(static_cast<int64_t>(plugins.size()), kMaxPlugins);
  }
  RETURN_IF_ERROR(CheckNodes(nodes));
  Plan plan;
  for (size_t i = 0; i < plugins.size(); ++i) {
    ASSIGN_OR_RETURN(auto record, ToRecord(plugins[i], i));
    plan.plugins.push_back(std::move(record));
  }
  std::ranges::sort(plan.plugins, {}, &PluginRecord::name);
  const auto twice = std::ranges::adjacent_find(plan.plugins, {}, &PluginRecord::name);
  if (twice != plan.plugins.end()) {
    return errors::InvalidPlugin(twice->name, "the plan names it twice");
  }
  for (const PluginRecord& plugin : plan.plugins) {
    if (plugin.once) {
      plan.pairs.push_back({plugin.name, "global"});
    } else {
      for (const std::string& node : nodes) plan.pairs.push_back({plugin.name, node});
    }
    if (plan.pairs.size() > kMaxPairs) {
      return errors::PlanTooLarge(static_cast<int64_t>(plan.pairs.size()), kMaxPairs);
    }
  }
  if (plan.pairs.empty()) return errors::EmptyPlan();
  return plan;
}

}  // namespace muster
