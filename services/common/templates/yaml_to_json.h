// Documents that users write in YAML or JSON, as JSON.
#ifndef MUSTER_SERVICES_COMMON_TEMPLATES_YAML_TO_JSON_H_
#define MUSTER_SERVICES_COMMON_TEMPLATES_YAML_TO_JSON_H_

#include <string_view>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"

namespace muster {

// Returns one document of at most 256 KiB. Plain scalars have the types of YAML's core schema:
// null, true, 12, 1.5; everything in quotes is text. Numbers are those of exact_json.h. An alias is
// copied. Fails with
// INVALID_ARGUMENT (INVALID_DOCUMENT) for more than 20,000 values, more than 32 levels, a key
// twice, and text that is not UTF-8.
//
// Source: https://yaml.org/spec/1.2.2/#103-core-schema
absl::StatusOr<nlohmann::json> YamlToJson(std::string_view text);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_TEMPLATES_YAML_TO_JSON_H_
