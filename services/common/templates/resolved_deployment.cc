#include "services/common/templates/resolved_deployment.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/utf8.h"
#include "services/common/errors/templates.h"
#include "services/common/templates/exact_json.h"
#include "services/common/templates/files.h"
#include "services/common/templates/workspaces.h"

namespace muster {
namespace {

using Json = nlohmann::json;

// Without a template, the type decides everything.
absl::StatusOr<MergedParameters> Merge(const ResolvedDeployment& resolved) {
  if (resolved.own) return MergeTemplate(resolved.type, *resolved.own);
  std::vector<std::string> mistakes;
  MergedParameters merged = MergeParameters(resolved.type.parameters, {}, &mistakes);
  if (!mistakes.empty()) return errors::InvalidDocument(absl::StrJoin(mistakes, "\n"));
  return merged;
}

TemplateLimits LimitsOf(const ResolvedDeployment& resolved) {
  TemplateLimits limits = resolved.type.limits;
  if (!resolved.own) return limits;
  const TemplateLimits& own = resolved.own->limits;
  if (own.memory) limits.memory = own.memory;
  if (own.cpus) limits.cpus = own.cpus;
  if (own.processes) limits.processes = own.processes;
  if (own.time) limits.time = own.time;
  if (own.output) limits.output = own.output;
  return limits;
}

absl::Status CheckSizes(const v1::Command::Deployment& deployment) {
  if (std::max(deployment.type_document().size(), deployment.template_document().size()) >
      kMaxDocument) {
    return errors::DocumentTooLarge(kMaxDocument >> 10);
  }
  return absl::OkStatus();
}

absl::Status CheckFilesOf(const v1::Command::Deployment& deployment, const TypeDocument& type) {
  if (type.ad_hoc == !deployment.files().empty()) return CheckFiles(deployment.files());
  return errors::InvalidFiles(
      absl::StrCat("the type ", type.name, "@", type.version,
                   type.ad_hoc ? " is ad-hoc, and there are none"
                               : " takes none: its document does not have adHoc: true"));
}

}  // namespace

std::map<std::string, const Output*> ResolvedDeployment::outputs() const {
  std::map<std::string, const Output*> all;
  for (const Output& output : type.outputs) all.emplace(output.name, &output);
  if (!own) return all;
  for (const Output& output : own->outputs) all.emplace(output.name, &output);
  return all;
}

bool ResolvedDeployment::is_idempotent() const {
  return std::ranges::find(type.idempotent, action) != type.idempotent.end();
}

absl::StatusOr<std::map<std::string, Json>> ReadParameterValues(std::string_view text) {
  if (text.size() > kMaxParameters) {
    return errors::InvalidParameters(
        absl::StrCat("they are larger than ", kMaxParameters >> 10, " KiB"));
  }
  std::map<std::string, Json> values;
  if (text.empty()) return values;
  if (!IsUtf8(text)) return errors::InvalidParameters("they are not UTF-8");
  const auto [json, fault] = ParseExactJson(text);
  if (fault != JsonFault::kNone && fault != JsonFault::kNotJson) {
    return errors::InvalidParameters(absl::StrCat("their JSON ", FaultText(fault)));
  }
  if (!json.is_object()) return errors::InvalidParameters("they are not a JSON object");
  for (const auto& [name, value] : json.items()) values.emplace(name, value);
  return values;
}

absl::StatusOr<ResolvedDeployment> ResolveDeployment(const v1::Command::Deployment& deployment) {
  RETURN_IF_ERROR(CheckSizes(deployment));
  ResolvedDeployment resolved;
  ASSIGN_OR_RETURN(resolved.type, ReadType(deployment.type_document()));
  if (!deployment.template_document().empty()) {
    ASSIGN_OR_RETURN(resolved.own, ReadTemplate(deployment.template_document()));
    const std::string type = absl::StrCat(resolved.type.name, "@", resolved.type.version);
    if (resolved.own->type != type) {
      return errors::InvalidDocument(
          absl::StrCat("the template is of type ", resolved.own->type, ", not of ", type));
    }
  }
  ASSIGN_OR_RETURN(const MergedParameters merged, Merge(resolved));
  if (std::ranges::find(resolved.type.actions, deployment.action()) ==
      resolved.type.actions.end()) {
    return errors::InvalidAction(deployment.action(), absl::StrJoin(resolved.type.actions, ", "));
  }
  RETURN_IF_ERROR(CheckFilesOf(deployment, resolved.type));
  const absl::Status secrets = CheckSecrets(
      MergeSecrets(resolved.type.secrets,
                   resolved.own ? resolved.own->secrets : std::vector<SecretDeclaration>()),
      deployment.secrets());
  if (deployment.has_workspace()) RETURN_IF_ERROR(CheckWorkspace(deployment.workspace()));
  ASSIGN_OR_RETURN(const auto values, ReadParameterValues(deployment.parameters()));
  std::vector<std::string> mistakes;
  resolved.parameters = ResolveParameters(merged, values, &mistakes);
  if (!mistakes.empty()) {
    if (!secrets.ok()) mistakes.emplace_back(secrets.message());
    return errors::InvalidParameters(absl::StrJoin(mistakes, "\n"));
  }
  RETURN_IF_ERROR(secrets);
  resolved.limits = LimitsOf(resolved);
  resolved.action = deployment.action();
  return resolved;
}

std::string ParametersJson(const std::map<std::string, ResolvedValue>& parameters) {
  Json json = Json::object();
  for (const auto& [name, resolved] : parameters) json[name] = resolved.value;
  return ExactJsonText(json);
}

}  // namespace muster
