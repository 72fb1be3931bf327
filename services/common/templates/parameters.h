// The parameters of types, templates and deployments.
#ifndef MUSTER_SERVICES_COMMON_TEMPLATES_PARAMETERS_H_
#define MUSTER_SERVICES_COMMON_TEMPLATES_PARAMETERS_H_

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nlohmann/json.hpp"
#include "services/common/templates/json_schema.h"

namespace muster {

// The document that sets the value of a parameter.
enum class Delegation {
  kFixed,      // this document: a later one cannot change it
  kDefault,    // this document, unless a later one sets another value
  kDelegated,  // a later document
};

// The document that set a value.
enum class ValueSource { kType, kTypeDefault, kTemplate, kTemplateDefault, kDeployment };

// "type", "type default", "template", "template default" or "deployment".
std::string_view SourceName(ValueSource source);

// Returns true for [A-Za-z_][A-Za-z0-9_]{0,127}.
bool IsParameterName(std::string_view name);

// One parameter of a type or a template.
struct Parameter {
  std::string name;  // [A-Za-z_][A-Za-z0-9_]{0,127}: it becomes the name of a variable
  std::string description;
  JsonSchema schema;
  bool has_schema = false;  // else the template leaves that of the type as it is
  Delegation delegation = Delegation::kDelegated;
  std::optional<nlohmann::json> value;  // unless it is delegated
  bool required = false;                // a value must be set if it is delegated
  bool sensitive = false;               // the value is never shown
  bool denies_required = false;         // "required: false" is written
  bool denies_sensitive = false;        // "sensitive: false" is written
};

// Reads the object "parameters" of a document: schema (default: anything, or that of the type),
// delegation, value, required, sensitive and description of each. Adds mistakes with their places.
// Values keep the numbers of exact_json.h.
std::vector<Parameter> ReadParameters(const nlohmann::json& parameters,
                                      const nlohmann::json& definitions,
                                      std::vector<std::string>* mistakes);

// A parameter of a template with its type.
struct MergedParameter {
  std::vector<const Parameter*> specs;  // of the type, then of the template; at least one
  Delegation delegation = Delegation::kDelegated;
  std::optional<nlohmann::json> value;
  ValueSource source = ValueSource::kType;
  bool required = false;
  bool sensitive = false;
};
using MergedParameters = std::map<std::string, MergedParameter>;

// Combines the parameters of a type with those of a template, which outlive the result. A template
// may narrow the schema of a parameter, set or fix its value, require it, make it sensitive, and
// add parameters. It may not change a fixed value, widen a schema, make a required parameter
// optional or a sensitive one public. Adds mistakes.
MergedParameters MergeParameters(const std::vector<Parameter>& type,
                                 const std::vector<Parameter>& own,
                                 std::vector<std::string>* mistakes);

struct ResolvedValue {
  nlohmann::json value;
  ValueSource source = ValueSource::kType;
  bool sensitive = false;
};

// Returns the value of each parameter that has one, for a deployment that sets `values`. Adds
// mistakes: an unknown or fixed parameter, a missing required one, a value that the schema of the
// type or of the template does not admit. They do not contain sensitive values.
std::map<std::string, ResolvedValue> ResolveParameters(
    const MergedParameters& parameters, const std::map<std::string, nlohmann::json>& values,
    std::vector<std::string>* mistakes);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_TEMPLATES_PARAMETERS_H_
