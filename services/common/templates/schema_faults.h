// Faults of values, in the words of people who write parameters and outputs.
#ifndef MUSTER_SERVICES_COMMON_TEMPLATES_SCHEMA_FAULTS_H_
#define MUSTER_SERVICES_COMMON_TEMPLATES_SCHEMA_FAULTS_H_

#include <re2/re2.h>

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "nlohmann/json.hpp"

namespace muster {

// The compiled patterns of a schema, by their text.
using SchemaPatterns = std::map<std::string, std::unique_ptr<const RE2>>;

inline constexpr size_t kMaxSchemaFaults = 20;  // a longer list is not useful

struct SchemaFault {
  std::string place;  // a JSON pointer (RFC 6901); empty for the whole value
  std::string problem;
};

// The keywords whose faults are found. kOwn: those that the library does not check (pattern,
// multipleOf, uniqueItems). kCommon: also type, enum, const, required, the limits of numbers,
// lengths and elements, and additionalProperties.
enum class SchemaChecks { kOwn, kCommon };

// Returns up to kMaxSchemaFaults faults, each with the value and what the schema demands. Below a
// combination, checks allOf only. `value` may have numbers of exact_json.h. Takes time in
// proportion to the sizes of schema and value.
std::vector<SchemaFault> FindSchemaFaults(const nlohmann::json& schema,
                                          const SchemaPatterns& patterns,
                                          const nlohmann::json& value, SchemaChecks checks);

// Returns a place with one more part.
std::string PlaceBelow(std::string_view place, std::string_view part);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_TEMPLATES_SCHEMA_FAULTS_H_
