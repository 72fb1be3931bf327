#include "services/common/templates/deployment_content.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "services/common/templates/exact_json.h"
#include "services/common/templates/files.h"

namespace muster {
namespace {

std::string Reference(const std::string& name, const std::string& version) {
  return absl::StrCat(name, "@", version);
}

}  // namespace

void DescribeContent(const v1::Command::Deployment& content, const ResolvedDeployment& resolved,
                     v1::Deployment* description) {
  description->set_type(Reference(resolved.type.name, resolved.type.version));
  if (resolved.own) {
    description->set_template_(Reference(resolved.own->name, resolved.own->version));
  }
  description->set_action(resolved.action);
  description->set_image(resolved.image());
  for (const auto& [name, value] : resolved.parameters) {
    v1::DeploymentParameter& parameter = *description->add_parameters();
    parameter.set_name(name);
    parameter.set_source(std::string(SourceName(value.source)));
    parameter.set_sensitive(value.sensitive);
    if (!value.sensitive) parameter.set_value(ExactJsonText(value.value));
  }
  *description->mutable_secrets() = content.secrets();
  if (content.has_workspace()) *description->mutable_workspace() = content.workspace();
  DescribeFiles(content.files(), description);
}

void DescribeFiles(const google::protobuf::RepeatedPtrField<v1::Command::File>& files,
                   v1::Deployment* description) {
  for (const v1::Command::File& file : files) {
    v1::DeploymentFile& added = *description->add_files();
    added.set_path(file.path());
    added.set_size(SizeOf(file));
    added.set_sha256(DigestOf(file));
    added.set_executable(file.executable());
  }
}

}  // namespace muster
