#include "services/agent/collection/plugin_task.h"

#include <unistd.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "services/agent/modules.h"
#include "services/common/base/fork_exec.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/agent.h"
#include "services/common/errors/jobs.h"
#include "services/common/plugin/plugin_definition.h"

namespace muster {
namespace {

absl::Status CheckModule(const PluginDefinition& definition, const NodePolicy& policy) {
  const ModuleEntry* module = FindModule(definition.name);
  if (module == nullptr || !module->built_in) {
    return errors::ModuleUnknown(definition.name);
  }
  return policy.AllowModule(definition.name);
}

// Returns the rule that admits the plugin's command.
absl::StatusOr<CommandRule> CheckCommand(const PluginDefinition& definition,
                                         const NodePolicy& policy) {
  CommandRequest request;
  request.action = std::string(kCollectAction);
  request.argv = definition.command;
  request.argv.insert(request.argv.end(), definition.args.begin(), definition.args.end());
  for (const auto& [name, value] : definition.env) request.variables.push_back(name);
  auto rule = policy.Allow(request);
  if (!rule.ok() || rule->user.empty()) return rule;
  ASSIGN_OR_RETURN(const auto user, ProcessUser::Find(rule->user));
  if (user.uid == geteuid()) return rule;
  return errors::PolicyNamesUser(rule->user);
}

}  // namespace

absl::StatusOr<AgentConfig> PlanPlugin(client::Config client, std::string definition_yaml,
                                       PolicyFile& policy) {
  ASSIGN_OR_RETURN(const auto definition, ParsePluginDefinition(definition_yaml, client.plugin));
  ASSIGN_OR_RETURN(const auto rules, policy.Current());
  AgentConfig config;
  config.client = std::move(client);
  config.progress_port = kAnyProgressPort;
  config.collects_once = true;
  switch (definition.kind) {
    case PluginKind::kContainer:
      return errors::NotForAgents();
    case PluginKind::kModule:
      RETURN_IF_ERROR(CheckModule(definition, *rules));
      config.mode = "module";
      break;
    case PluginKind::kExec: {
      ASSIGN_OR_RETURN(const auto rule, CheckCommand(definition, *rules));
      config.mode = "exec";
      config.time_limit = absl::ToChronoMilliseconds(rule.time_limit);
      break;
    }
  }
  config.definition = std::move(definition_yaml);
  return config;
}

}  // namespace muster
