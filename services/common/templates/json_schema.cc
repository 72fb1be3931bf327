#include "services/common/templates/json_schema.h"

// Otherwise valijson ends the process for an invalid schema.
#define VALIJSON_USE_EXCEPTIONS 1

#include <re2/re2.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <utility>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validation_results.hpp>
#include <valijson/validator.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/errors/templates.h"
#include "services/common/templates/exact_json.h"
#include "services/common/templates/schema_faults.h"
#include "services/common/templates/schema_keywords.h"

namespace muster {
namespace {

using Json = nlohmann::json;

constexpr size_t kMaxText = size_t{256} << 10;
constexpr int kMaxParts = 2'000;
constexpr int kMaxDepth = 16;
constexpr int kMaxValueDepth = 32;
constexpr size_t kMaxPattern = 1'024;
constexpr size_t kMaxPatterns = 100;
constexpr int64_t kMaxExplained = 20'000;
constexpr std::string_view kLocal = "#/definitions/";

absl::Status Fault(const std::string& place, std::string_view problem) {
  return errors::InvalidSchema(place.empty() ? "/" : place, problem);
}

// Keywords that valijson checks with std::regex, whose time and stack grow with the value, with a
// comparison of all pairs, or with a division by zero.
bool IsCheckedHere(std::string_view keyword) {
  return keyword == "pattern" || keyword == "multipleOf" || keyword == "uniqueItems";
}

// Copies a schema without its references, and checks it.
class SchemaReader {
 public:
  SchemaReader(const Json& definitions, SchemaPatterns* patterns)
      : definitions_(definitions), patterns_(patterns) {}

  int parts() const { return parts_; }

  absl::StatusOr<Json> Read(const Json& schema, const std::string& place, int depth,
                            bool combined) {
    if (++parts_ > kMaxParts) {
      return Fault(place, absl::StrCat("more than ", kMaxParts, " parts without references"));
    }
    if (depth > kMaxDepth) return Fault(place, absl::StrCat("more than ", kMaxDepth, " levels"));
    if (schema.is_boolean()) return schema;
    if (!schema.is_object()) return Fault(place, "a schema is an object, true or false");
    if (schema.contains("$ref")) return ReadReference(schema, place, depth, combined);
    Json read = Json::object();
    for (const auto& [name, value] : schema.items()) {
      ASSIGN_OR_RETURN(read[name],
                       ReadKeyword(name, value, PlaceBelow(place, name), depth, combined));
    }
    return read;
  }

 private:
  absl::StatusOr<Json> ReadReference(const Json& schema, const std::string& place, int depth,
                                     bool combined) {
    const Json& reference = schema["$ref"];
    if (schema.size() > 1)
      return Fault(place, "$ref stands alone: draft-07 ignores what is beside");
    if (!reference.is_string() || !reference.get<std::string>().starts_with(kLocal)) {
      return Fault(place, "$ref is not #/definitions/NAME: other documents are not read");
    }
    const std::string name = reference.get<std::string>().substr(kLocal.size());
    if (!definitions_.is_object() || !definitions_.contains(name)) {
      return Fault(place, absl::StrCat("there is no definition ", name));
    }
    if (!open_.insert(name).second) {
      return Fault(place, absl::StrCat("the definition ", name, " contains itself"));
    }
    auto read = Read(definitions_[name], place, depth + 1, combined);
    open_.erase(name);
    return read;
  }

  absl::StatusOr<Json> ReadKeyword(const std::string& name, const Json& value,
                                   const std::string& place, int depth, bool combined) {
    switch (KindOfKeyword(name)) {
      case SchemaKeyword::kUnknown:
        return Fault(place, "no such keyword in JSON Schema draft-07");
      case SchemaKeyword::kUnsupported:
        return Fault(place, "this keyword is not supported here");
      case SchemaKeyword::kAnnotation:
        RETURN_IF_ERROR(Charge(value, place));
        return value;
      case SchemaKeyword::kPlain:
        RETURN_IF_ERROR(Charge(value, place));
        RETURN_IF_ERROR(CheckPlain(name, value, place, combined));
        return value;
      case SchemaKeyword::kSchema:
        return Read(value, place, depth + 1, combined);
      case SchemaKeyword::kSchemas:
        return ReadMembers(value, place, depth, combined);
      case SchemaKeyword::kCombination:
        if (value.is_array()) return ReadList(value, place, depth);
        if (name == "dependencies") return ReadDependencies(value, place, depth);
        return Read(value, place, depth + 1, /*combined=*/true);
    }
    return Fault(place, "no such keyword");
  }

  absl::StatusOr<Json> ReadMembers(const Json& members, const std::string& place, int depth,
                                   bool combined) {
    if (!members.is_object()) return Fault(place, "must be an object of schemas");
    Json read = Json::object();
    for (const auto& [name, schema] : members.items()) {
      ASSIGN_OR_RETURN(read[name], Read(schema, PlaceBelow(place, name), depth + 1, combined));
    }
    return read;
  }

  absl::StatusOr<Json> ReadList(const Json& list, const std::string& place, int depth) {
    Json read = Json::array();
    for (size_t i = 0; i < list.size(); ++i) {
      ASSIGN_OR_RETURN(auto schema,
                       Read(list[i], PlaceBelow(place, absl::StrCat(i)), depth + 1, true));
      read.push_back(std::move(schema));
    }
    return read;
  }

  absl::StatusOr<Json> ReadDependencies(const Json& members, const std::string& place, int depth) {
    if (!members.is_object()) return Fault(place, "must be an object");
    Json read = Json::object();
    for (const auto& [name, value] : members.items()) {
      if (value.is_array()) {  // names of members
        read[name] = value;
        continue;
      }
      ASSIGN_OR_RETURN(read[name], Read(value, PlaceBelow(place, name), depth + 1, true));
    }
    return read;
  }

  // A definition that is referenced often is copied often.
  absl::Status Charge(const Json& value, const std::string& place) {
    bytes_ += value.dump(-1, ' ', false, Json::error_handler_t::replace).size();
    if (bytes_ <= kMaxText) return absl::OkStatus();
    return Fault(place, "the schema has more than 256 KiB without references");
  }

  absl::Status CheckPlain(const std::string& name, const Json& value, const std::string& place,
                          bool combined) {
    if (IsCheckedHere(name) && combined) {
      return Fault(place, "this keyword below a combination is not supported");
    }
    if (name == "pattern") return AddPattern(value, place);
    if (name == "multipleOf" && (!value.is_number() || !(value.get<double>() > 0))) {
      return Fault(place, "must be a number above 0");
    }
    if (name == "uniqueItems" && !value.is_boolean()) return Fault(place, "must be true or false");
    if (name != "type") return absl::OkStatus();
    static const std::set<std::string> kTypes = {"array",  "boolean", "integer", "null",
                                                 "number", "object",  "string"};
    for (const Json& type : value.is_array() ? value : Json::array({value})) {
      if (!type.is_string() || !kTypes.contains(type.get<std::string>())) {
        return Fault(place, "a type is array, boolean, integer, null, number, object or string");
      }
    }
    return absl::OkStatus();
  }

  absl::Status AddPattern(const Json& value, const std::string& place) {
    if (!value.is_string()) return Fault(place, "must be text");
    const auto text = value.get<std::string>();
    if (patterns_->contains(text)) return absl::OkStatus();
    if (patterns_->size() >= kMaxPatterns) {
      return Fault(place, absl::StrCat("more than ", kMaxPatterns, " patterns"));
    }
    if (text.size() > kMaxPattern) {
      return Fault(place, absl::StrCat("a pattern has at most ", kMaxPattern, " bytes"));
    }
    RE2::Options options(RE2::Quiet);
    options.set_max_mem(256 << 10);
    auto pattern = std::make_unique<const RE2>(text, options);
    if (!pattern->ok()) {
      return Fault(place, absl::StrCat("not a pattern in the syntax of RE2: ", pattern->error()));
    }
    (*patterns_)[text] = std::move(pattern);
    return absl::OkStatus();
  }

  const Json& definitions_;
  SchemaPatterns* const patterns_;
  int parts_ = 0;
  size_t bytes_ = 0;
  std::set<std::string> open_;  // definitions that are being read
};

// Returns a copy for valijson.
Json ForValijson(const Json& schema) {
  if (schema.is_array()) {
    Json copy = Json::array();
    for (const Json& element : schema) copy.push_back(ForValijson(element));
    return copy;
  }
  if (!schema.is_object()) return schema;
  Json copy = Json::object();
  for (const auto& [name, value] : schema.items()) {
    if (IsCheckedHere(name) || name == "format") continue;
    if (name == "dependencies") {  // its members are no keywords
      copy[name] = Json::object();
      for (const auto& [member, part] : value.items()) {
        copy[name][member] = part.is_array() ? part : ForValijson(part);
      }
      continue;
    }
    switch (KindOfKeyword(name)) {
      case SchemaKeyword::kSchema:
      case SchemaKeyword::kCombination:
        copy[name] = ForValijson(value);
        break;
      case SchemaKeyword::kSchemas:
        copy[name] = Json::object();
        for (const auto& [member, part] : value.items()) {
          copy[name][member] = ForValijson(part);
        }
        break;
      default:
        copy[name] = value;
    }
  }
  return copy;
}

int DepthOf(const Json& value, int limit) {
  if (limit == 0 || !value.is_structured()) return 1;
  int deepest = 0;
  for (const Json& part : value) deepest = std::max(deepest, DepthOf(part, limit - 1));
  return deepest + 1;
}

int64_t CountOf(const Json& value) {
  int64_t count = 1;
  if (value.is_structured()) {
    for (const Json& part : value) count += CountOf(part);
  }
  return count;
}

// Returns "/a/0" for valijson's {"<root>", "[a]", "[0]"}.
std::string PlaceOf(const std::vector<std::string>& context) {
  std::string place;
  for (size_t i = 1; i < context.size(); ++i) {
    absl::string_view part = context[i];
    absl::ConsumePrefix(&part, "[");
    absl::ConsumeSuffix(&part, "]");
    place = PlaceBelow(place, ToStd(part));
  }
  return place;
}

// Returns whether `place` contains a place with a fault: what the library reports there follows.
bool IsExplained(const std::string& place, const std::vector<SchemaFault>& faults) {
  return std::ranges::any_of(faults, [&](const SchemaFault& fault) {
    return fault.place == place || fault.place.starts_with(place + "/");
  });
}

// Adds the faults of other keywords in the words of the library.
void AddOtherFaults(const valijson::Schema& schema,
                    const valijson::adapters::NlohmannJsonAdapter& value,
                    std::vector<SchemaFault>* faults) {
  const std::vector<SchemaFault> known = *faults;
  valijson::ValidationResults results;
  valijson::Validator().validate(schema, value, &results);
  for (const valijson::ValidationResults::Error& error : results) {
    if (faults->size() >= kMaxSchemaFaults) break;
    SchemaFault fault = {PlaceOf(error.context), error.description};
    if (!IsExplained(fault.place, known)) faults->push_back(std::move(fault));
  }
}

}  // namespace

struct JsonSchema::Compiled {
  valijson::Schema schema;
  SchemaPatterns patterns;
  int64_t parts = 0;
};

JsonSchema::JsonSchema(Json json, std::unique_ptr<const Compiled> compiled)
    : json_(std::move(json)), compiled_(std::move(compiled)) {}
JsonSchema::JsonSchema(JsonSchema&&) noexcept = default;
JsonSchema& JsonSchema::operator=(JsonSchema&&) noexcept = default;
JsonSchema::~JsonSchema() = default;

absl::StatusOr<JsonSchema> JsonSchema::Parse(const Json& schema, const Json& definitions) {
  auto compiled = std::make_unique<Compiled>();
  SchemaReader reader(definitions, &compiled->patterns);
  ASSIGN_OR_RETURN(Json json, reader.Read(schema, "", 1, /*combined=*/false));
  compiled->parts = reader.parts();
  try {
    // A schema of true or false is an object for valijson.
    const Json plain = json.is_object()      ? ForValijson(json)
                       : json == Json(false) ? Json{{"not", Json::object()}}
                                             : Json::object();
    const valijson::adapters::NlohmannJsonAdapter adapter(plain);
    valijson::SchemaParser().populateSchema(adapter, compiled->schema);
  } catch (const std::exception& e) {
    return Fault("", e.what());
  }
  return JsonSchema(std::move(json), std::move(compiled));
}

int64_t JsonSchema::WorkOf(const Json& value) const { return CountOf(value) * compiled_->parts; }

std::vector<std::string> JsonSchema::Validate(const Json& value, std::string_view name) const {
  std::vector<std::string> texts;
  for (const SchemaFault& fault : FindFaults(value)) {
    const std::string place = absl::StrCat(ToAbsl(name), fault.place);
    texts.push_back(absl::StrCat(place.empty() ? "/" : place, ": ", fault.problem));
  }
  return texts;
}

std::vector<SchemaFault> JsonSchema::FindFaults(const Json& value) const {
  if (DepthOf(value, kMaxValueDepth + 1) > kMaxValueDepth) {
    return {{"", absl::StrCat("more than ", kMaxValueDepth, " levels")}};
  }
  const int64_t work = WorkOf(value);
  if (work > kMaxSchemaWork) return {{"", "schema and value are too large together"}};
  const Json plain = WithDoubles(value);
  const valijson::adapters::NlohmannJsonAdapter adapter(plain);
  if (valijson::Validator().validate(compiled_->schema, adapter, nullptr)) {
    return FindSchemaFaults(json_, compiled_->patterns, value, SchemaChecks::kOwn);
  }
  auto faults = FindSchemaFaults(json_, compiled_->patterns, value, SchemaChecks::kCommon);
  // The number of explanations grows with the work, too.
  if (work <= kMaxExplained) AddOtherFaults(compiled_->schema, adapter, &faults);
  if (faults.empty()) faults.push_back({"", "the schema does not admit the value"});
  return faults;
}

}  // namespace muster
