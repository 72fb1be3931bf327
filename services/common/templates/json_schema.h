// JSON Schema (draft-07) for parameters and outputs of templates.
#ifndef MUSTER_SERVICES_COMMON_TEMPLATES_JSON_SCHEMA_H_
#define MUSTER_SERVICES_COMMON_TEMPLATES_JSON_SCHEMA_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"

namespace muster {

struct SchemaFault;  // schema_faults.h

// The largest work of one check or comparison. Each value is checked by each part of a schema in
// the worst case.
inline constexpr int64_t kMaxSchemaWork = 2'000'000;

// A schema from an untrusted document: checking a value takes time in proportion to the sizes of
// schema and value. Immutable; thread-safe.
//
// Source: https://json-schema.org/draft-07. Differences, each refused by Parse where it matters:
// `$ref` only to "#/definitions/NAME", without cycles; `pattern` in the syntax of RE2, and not
// below a combination (allOf, anyOf, oneOf, not, if, contains, propertyNames, dependencies); no
// `patternProperties`; unknown keywords are mistakes. `format` is an annotation.
class JsonSchema {
 public:
  // `definitions`: those of the document that the schema is part of; an object or null. Fails with
  // INVALID_ARGUMENT (INVALID_SCHEMA); the message names the place, such as
  // "/properties/a/type". At most 256 KiB and 2,000 parts without references, 16 levels deep.
  static absl::StatusOr<JsonSchema> Parse(const nlohmann::json& schema,
                                          const nlohmann::json& definitions);

  JsonSchema(JsonSchema&&) noexcept;
  JsonSchema& operator=(JsonSchema&&) noexcept;
  ~JsonSchema();

  // Returns the faults of a value, each with its place: "/size: ...", or "NAME/size: ..." with a
  // name of the value. Empty for a valid one. A value more than 32 levels deep is a fault. `value`
  // may have numbers of exact_json.h; they are compared as doubles.
  std::vector<std::string> Validate(const nlohmann::json& value, std::string_view name = "") const;

  // Returns the work of Validate: parts of the schema times values in `value`. Validate refuses
  // more than kMaxSchemaWork.
  int64_t WorkOf(const nlohmann::json& value) const;

  // Returns the schema without references.
  const nlohmann::json& json() const { return json_; }

 private:
  struct Compiled;

  std::vector<SchemaFault> FindFaults(const nlohmann::json& value) const;
  JsonSchema(nlohmann::json json, std::unique_ptr<const Compiled> compiled);

  nlohmann::json json_;
  std::unique_ptr<const Compiled> compiled_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_TEMPLATES_JSON_SCHEMA_H_
