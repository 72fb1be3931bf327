#include "services/common/templates/parameters.h"

#include <algorithm>
#include <ranges>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "services/common/base/strings.h"
#include "services/common/base/suggestion.h"
#include "services/common/templates/exact_json.h"
#include "services/common/templates/schema_comparison.h"

namespace muster {
namespace {

using Json = nlohmann::json;

constexpr size_t kMaxName = 128;

}  // namespace

bool IsParameterName(std::string_view name) {
  return !name.empty() && name.size() <= kMaxName &&
         !absl::ascii_isdigit(static_cast<unsigned char>(name.front())) &&
         std::ranges::all_of(name, [](char c) {
           return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_';
         });
}

namespace {

// Reads one parameter.
class ParameterReader {
 public:
  ParameterReader(std::string name, const Json& definitions, std::vector<std::string>* mistakes)
      : name_(std::move(name)), definitions_(definitions), mistakes_(mistakes) {}

  std::optional<Parameter> Read(const Json& exact) {
    const Json json = WithDoubles(exact);
    if (!IsParameterName(name_)) {
      Mistake("", "the name is not [A-Za-z_][A-Za-z0-9_]{0,127}");
      return std::nullopt;
    }
    if (!json.is_object()) {
      Mistake("", "must be an object");
      return std::nullopt;
    }
    RefuseUnknown(json);
    auto schema =
        JsonSchema::Parse(json.contains("schema") ? json["schema"] : Json(true), definitions_);
    if (!schema.ok()) {
      Mistake("/schema", ToStd(schema.status().message()));
      return std::nullopt;
    }
    Parameter parameter{.name = name_, .schema = *std::move(schema)};
    parameter.has_schema = json.contains("schema");
    parameter.required = ReadBool(json, "required");
    parameter.sensitive = ReadBool(json, "sensitive");
    parameter.denies_required = json.contains("required") && !parameter.required;
    parameter.denies_sensitive = json.contains("sensitive") && !parameter.sensitive;
    if (const auto text = json.find("description"); text != json.end()) {
      text->is_string() ? void(parameter.description = text->get<std::string>())
                        : Mistake("/description", "must be text");
    }
    if (json.contains("value")) parameter.value = exact["value"];
    ReadDelegation(json, &parameter);
    CheckValue(parameter);
    return parameter;
  }

 private:
  void Mistake(std::string_view place, std::string_view problem) {
    mistakes_->push_back(absl::StrCat("/parameters/", name_, ToAbsl(place), ": ", ToAbsl(problem)));
  }

  void RefuseUnknown(const Json& json) {
    static const std::vector<std::string> kFields = {"delegation", "description", "required",
                                                     "schema",     "sensitive",   "value"};
    for (const auto& [field, value] : json.items()) {
      if (std::ranges::find(kFields, field) != kFields.end()) continue;
      Mistake("/" + field, absl::StrCat("no such field", Suggestion(field, kFields)));
    }
  }

  bool ReadBool(const Json& json, const char* field) {
    const auto found = json.find(field);
    if (found == json.end()) return false;
    if (!found->is_boolean()) Mistake(absl::StrCat("/", field), "must be true or false");
    return *found == Json(true);
  }

  void ReadDelegation(const Json& json, Parameter* parameter) {
    const auto found = json.find("delegation");
    if (found == json.end()) {
      if (parameter->value) parameter->delegation = Delegation::kDefault;
    } else if (*found == "fixed") {
      parameter->delegation = Delegation::kFixed;
    } else if (*found == "default") {
      parameter->delegation = Delegation::kDefault;
    } else if (*found != "delegated") {
      Mistake("/delegation", "must be fixed, default or delegated");
    }
    const bool is_delegated = parameter->delegation == Delegation::kDelegated;
    if (is_delegated && parameter->value) Mistake("/value", "a delegated parameter has no value");
    if (!is_delegated && !parameter->value) Mistake("", "a value is missing");
    if (!is_delegated && parameter->required) Mistake("/required", "it has a value");
  }

  void CheckValue(const Parameter& parameter) {
    if (!parameter.value) return;
    const std::string place = absl::StrCat("/parameters/", name_, "/value");
    for (const std::string& fault : parameter.schema.Validate(*parameter.value, place)) {
      parameter.sensitive ? Mistake("/value", "the schema does not admit it")
                          : mistakes_->push_back(fault);
    }
  }

  const std::string name_;
  const Json& definitions_;
  std::vector<std::string>* const mistakes_;
};

MergedParameter OfType(const Parameter& spec) {
  return {.specs = {&spec},
          .delegation = spec.delegation,
          .value = spec.value,
          .source = spec.delegation == Delegation::kFixed ? ValueSource::kType
                                                          : ValueSource::kTypeDefault,
          .required = spec.required,
          .sensitive = spec.sensitive};
}

// Applies a template's parameter to that of its type, if the type has it.
void Apply(const Parameter& own, MergedParameter* merged, std::vector<std::string>* mistakes) {
  const auto mistake = [&](std::string_view problem) {
    mistakes->push_back(absl::StrCat("/parameters/", own.name, ": ", ToAbsl(problem)));
  };
  if (!merged->specs.empty()) {
    if (merged->delegation == Delegation::kFixed) return mistake("the type fixes its value");
    const JsonSchema& of_type = merged->specs.front()->schema;
    const std::string why = own.has_schema ? WhyNotNarrower(own.schema, of_type) : "";
    if (!why.empty())
      return mistake(absl::StrCat("the schema is not narrower than that of the type: ", why));
    if (own.value && !of_type.Validate(*own.value).empty()) {
      return mistake("the schema of the type does not admit its value");
    }
    const bool has_value = own.delegation != Delegation::kDelegated;
    if (merged->required && own.denies_required && !has_value) {
      return mistake("it is required by the type, so required: false is not possible");
    }
    if (merged->sensitive && own.denies_sensitive) {
      return mistake("it is sensitive by the type, so sensitive: false is not possible");
    }
  }
  merged->specs.push_back(&own);
  merged->sensitive = merged->sensitive || own.sensitive;
  if (own.delegation != Delegation::kDelegated) {
    merged->delegation = own.delegation;
    merged->value = own.value;
    merged->source = own.delegation == Delegation::kFixed ? ValueSource::kTemplate
                                                          : ValueSource::kTemplateDefault;
    merged->required = false;
    return;
  }
  // A default of the type remains, unless the schema of the template does not admit it.
  if (merged->value && !own.schema.Validate(*merged->value).empty()) {
    merged->value.reset();
    merged->delegation = Delegation::kDelegated;
  }
  merged->required = merged->required || own.required;
}

}  // namespace

std::string_view SourceName(ValueSource source) {
  switch (source) {
    case ValueSource::kType:
      return "type";
    case ValueSource::kTypeDefault:
      return "type default";
    case ValueSource::kTemplate:
      return "template";
    case ValueSource::kTemplateDefault:
      return "template default";
    case ValueSource::kDeployment:
      return "deployment";
  }
  return "";
}

std::vector<Parameter> ReadParameters(const Json& parameters, const Json& definitions,
                                      std::vector<std::string>* mistakes) {
  std::vector<Parameter> read;
  if (parameters.is_null()) return read;
  if (!parameters.is_object()) {
    mistakes->push_back("/parameters: must be an object");
    return read;
  }
  for (const auto& [name, json] : parameters.items()) {
    auto parameter = ParameterReader(name, definitions, mistakes).Read(json);
    if (parameter) read.push_back(*std::move(parameter));
  }
  return read;
}

MergedParameters MergeParameters(const std::vector<Parameter>& type,
                                 const std::vector<Parameter>& own,
                                 std::vector<std::string>* mistakes) {
  MergedParameters merged;
  for (const Parameter& spec : type) merged.emplace(spec.name, OfType(spec));
  for (const Parameter& spec : own) Apply(spec, &merged[spec.name], mistakes);
  return merged;
}

std::map<std::string, ResolvedValue> ResolveParameters(const MergedParameters& parameters,
                                                       const std::map<std::string, Json>& values,
                                                       std::vector<std::string>* mistakes) {
  std::vector<std::string> names;
  for (const auto& [name, parameter] : parameters) names.push_back(name);
  for (const auto& [name, value] : values) {
    if (parameters.contains(name)) continue;
    mistakes->push_back(absl::StrCat(name, ": no such parameter", Suggestion(name, names)));
  }
  std::map<std::string, ResolvedValue> resolved;
  for (const auto& [name, parameter] : parameters) {
    ResolvedValue result{.source = parameter.source, .sensitive = parameter.sensitive};
    const auto set = values.find(name);
    if (set != values.end()) {
      if (parameter.delegation == Delegation::kFixed) {
        mistakes->push_back(
            absl::StrCat(name, ": the ", ToAbsl(SourceName(parameter.source)), " fixes its value"));
        continue;
      }
      result.value = set->second;
      result.source = ValueSource::kDeployment;
    } else if (parameter.value) {
      result.value = *parameter.value;
    } else {
      if (parameter.required) mistakes->push_back(absl::StrCat(name, ": a value is required"));
      continue;
    }
    // The schema of a template is narrower than that of its type, and comes last: what it refuses
    // is not reported again with the wider bounds.
    for (const Parameter* spec : parameter.specs | std::views::reverse) {
      const std::vector<std::string> faults = spec->schema.Validate(result.value, name);
      if (faults.empty()) continue;
      if (parameter.sensitive) {
        mistakes->push_back(absl::StrCat(name, ": the schema does not admit the value"));
      } else {
        mistakes->insert(mistakes->end(), faults.begin(), faults.end());
      }
      break;
    }
    resolved.emplace(name, std::move(result));
  }
  return resolved;
}

}  // namespace muster
