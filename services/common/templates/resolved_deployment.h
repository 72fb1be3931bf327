// The content of a deployment: its documents and parameters, resolved.
#ifndef MUSTER_SERVICES_COMMON_TEMPLATES_RESOLVED_DEPLOYMENT_H_
#define MUSTER_SERVICES_COMMON_TEMPLATES_RESOLVED_DEPLOYMENT_H_

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/v1/jobs.pb.h"
#include "nlohmann/json.hpp"
#include "services/common/identity/signed_command.h"  // kMaxDocument and kMaxParameters
#include "services/common/templates/documents.h"
#include "services/common/templates/parameters.h"

namespace muster {

// The action that undoes a deployment.
inline constexpr std::string_view kDestroyAction = "destroy";

struct ResolvedDeployment {
  TypeDocument type;
  std::optional<TemplateDocument> own;  // nothing: the type is deployed alone
  std::map<std::string, ResolvedValue> parameters;
  TemplateLimits limits;  // of the template where it has one, else of the type
  std::string action;

  // Returns the image that runs: that of a built template, else that of the type.
  const std::string& image() const { return own && !own->image.empty() ? own->image : type.image; }

  // Returns the outputs of type and template, by name.
  std::map<std::string, const Output*> outputs() const;

  // Returns whether the required outputs must be written. The action "destroy" may leave them out:
  // they describe what it removes.
  bool requires_outputs() const { return action != kDestroyAction; }

  // Returns whether the type declares its action idempotent.
  bool is_idempotent() const;
};

// Resolves the parameters, and checks action, files, secrets and workspace. The jobs service and
// each node call it with the same content, so both decide alike. INVALID_ARGUMENT
// (INVALID_DOCUMENT, INVALID_PARAMETERS, INVALID_FILES, INVALID_SECRETS, INVALID_WORKSPACE).
absl::StatusOr<ResolvedDeployment> ResolveDeployment(const v1::Command::Deployment& deployment);

// Returns the values as one JSON object, as the container gets them.
std::string ParametersJson(const std::map<std::string, ResolvedValue>& parameters);

// Reads a JSON object of at most kMaxParameters with at most 32 levels. INVALID_ARGUMENT
// (INVALID_PARAMETERS).
absl::StatusOr<std::map<std::string, nlohmann::json>> ReadParameterValues(std::string_view text);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_TEMPLATES_RESOLVED_DEPLOYMENT_H_
