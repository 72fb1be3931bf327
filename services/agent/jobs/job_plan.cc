#include "services/agent/jobs/job_plan.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "services/common/rpc/proto_time.h"
#include "services/common/templates/documents.h"

namespace muster {

v1::JobCommand::Target TargetFor(const v1::JobCommand& command, const std::string& node) {
  for (const v1::JobCommand::Target& target : command.targets()) {
    if (target.node() == node) return target;
  }
  return command.targets().empty() ? v1::JobCommand::Target() : command.targets(0);
}

JobPlan MakeJobPlan(const v1::JobCommand& command, const Verdict& verdict) {
  JobPlan plan;
  plan.argv = verdict.rule.argv;
  plan.user = verdict.rule.user;
  plan.directory = verdict.rule.directory;
  for (const v1::Command::Variable& variable : verdict.command.environment()) {
    plan.environment.push_back(absl::StrCat(variable.name(), "=", variable.value()));
  }
  plan.time_limit = std::min(FromProto(verdict.command.time_limit()), verdict.rule.time_limit);
  plan.stated_limit = plan.time_limit;
  if (command.has_end_within()) {
    plan.time_limit = std::min(plan.time_limit, FromProto(command.end_within()));
  }
  plan.max_output = verdict.rule.max_output;
  plan.keep_output = !verdict.command.discard_output();
  plan.image = verdict.command.container().image();
  plan.container = verdict.rule.container;
  plan.is_build = verdict.command.container().has_build();
  if (verdict.command.container().has_deployment()) {
    const v1::Command::Deployment& deployment = verdict.command.container().deployment();
    plan.deployment = deployment.deployment();
    plan.environment.insert(plan.environment.end(),
                            {absl::StrCat("MUSTER_DEPLOYMENT=", deployment.deployment()),
                             absl::StrCat("MUSTER_ACTION=", deployment.action()),
                             absl::StrCat("MUSTER_CONTRACT=", kTemplateContract)});
  }
  return plan;
}

}  // namespace muster
