#include "services/jobs/metadata/json_schema.h"

// Otherwise valijson ends the process for an invalid schema.
#define VALIJSON_USE_EXCEPTIONS 1

#include <re2/re2.h>

#include <map>
#include <set>
#include <utility>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validation_results.hpp>
#include <valijson/validator.hpp>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/errors/templates.h"
#include "services/jobs/metadata/schema_keywords.h"

namespace muster {
namespace {

using Json = nlohmann::json;
using Patterns = std::map<std::string, std::unique_ptr<const RE2>>;

constexpr size_t kMaxText = size_t{256} << 10;
constexpr int kMaxParts = 2'000;
constexpr int kMaxDepth = 16;
constexpr int kMaxValueDepth = 32;
constexpr size_t kMaxPattern = 1'024;
constexpr size_t kMaxFaults = 20;  // a longer list is not useful
constexpr std::string_view kLocal = "#/definitions/";

// Returns a place as a JSON pointer (RFC 6901) with one more part.
std::string Below(const std::string& place, std::string_view part) {
  return absl::StrCat(place, "/", absl::StrReplaceAll(ToAbsl(part), {{"~", "~0"}, {"/", "~1"}}));
}

absl::Status Fault(const std::string& place, std::string_view problem) {
  return errors::InvalidSchema(place.empty() ? "/" : place, problem);
}

// Copies a schema without its references, and checks it.
class SchemaReader {
 public:
  SchemaReader(const Json& definitions, Patterns* patterns)
      : definitions_(definitions), patterns_(patterns) {}

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
      ASSIGN_OR_RETURN(read[name], ReadKeyword(name, value, Below(place, name), depth, combined));
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
        return value;
      case SchemaKeyword::kPlain:
        if (name == "pattern") RETURN_IF_ERROR(AddPattern(value, place, combined));
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
      ASSIGN_OR_RETURN(read[name], Read(schema, Below(place, name), depth + 1, combined));
    }
    return read;
  }

  absl::StatusOr<Json> ReadList(const Json& list, const std::string& place, int depth) {
    Json read = Json::array();
    for (size_t i = 0; i < list.size(); ++i) {
      ASSIGN_OR_RETURN(auto schema, Read(list[i], Below(place, absl::StrCat(i)), depth + 1, true));
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
      ASSIGN_OR_RETURN(read[name], Read(value, Below(place, name), depth + 1, true));
    }
    return read;
  }

  absl::Status AddPattern(const Json& value, const std::string& place, bool combined) {
    if (!value.is_string()) return Fault(place, "must be text");
    const auto text = value.get<std::string>();
    if (combined) return Fault(place, "a pattern below a combination is not supported");
    if (text.size() > kMaxPattern) {
      return Fault(place, absl::StrCat("a pattern has at most ", kMaxPattern, " bytes"));
    }
    RE2::Options options(RE2::Quiet);
    options.set_max_mem(1 << 20);
    auto pattern = std::make_unique<const RE2>(text, options);
    if (!pattern->ok()) {
      return Fault(place, absl::StrCat("not a pattern in the syntax of RE2: ", pattern->error()));
    }
    (*patterns_)[text] = std::move(pattern);
    return absl::OkStatus();
  }

  const Json& definitions_;
  Patterns* const patterns_;
  int parts_ = 0;
  std::set<std::string> open_;  // definitions that are being read
};

// Returns a copy without the keywords that valijson would check with std::regex, whose time and
// stack grow with the value.
Json WithoutRegularExpressions(const Json& schema) {
  if (schema.is_array()) {
    Json copy = Json::array();
    for (const Json& element : schema) copy.push_back(WithoutRegularExpressions(element));
    return copy;
  }
  if (!schema.is_object()) return schema;
  Json copy = Json::object();
  for (const auto& [name, value] : schema.items()) {
    if (name == "pattern" || name == "format") continue;
    switch (KindOfKeyword(name)) {
      case SchemaKeyword::kSchema:
      case SchemaKeyword::kCombination:
        copy[name] = WithoutRegularExpressions(value);
        break;
      case SchemaKeyword::kSchemas:
        copy[name] = Json::object();
        for (const auto& [member, part] : value.items()) {
          copy[name][member] = WithoutRegularExpressions(part);
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

// Checks the patterns of a schema, which are not in what valijson knows.
void CheckPatterns(const Json& schema, const Patterns& patterns, const Json& value,
                   const std::string& place, std::vector<std::string>* faults) {
  if (!schema.is_object() || faults->size() >= kMaxFaults) return;
  if (const auto pattern = schema.find("pattern"); pattern != schema.end() && value.is_string()) {
    const auto& text = pattern->get_ref<const std::string&>();
    if (!RE2::PartialMatch(value.get_ref<const std::string&>(), *patterns.at(text))) {
      faults->push_back(absl::StrCat(place.empty() ? "/" : place, ": does not match ", text));
    }
  }
  if (const auto items = schema.find("items"); items != schema.end() && value.is_array()) {
    for (size_t i = 0; i < value.size(); ++i) {
      CheckPatterns(*items, patterns, value[i], Below(place, absl::StrCat(i)), faults);
    }
  }
  if (!value.is_object()) return;
  const auto properties = schema.find("properties");
  const auto others = schema.find("additionalProperties");
  for (const auto& [name, member] : value.items()) {
    if (properties != schema.end() && properties->contains(name)) {
      CheckPatterns((*properties)[name], patterns, member, Below(place, name), faults);
    } else if (others != schema.end()) {
      CheckPatterns(*others, patterns, member, Below(place, name), faults);
    }
  }
}

// Returns "/a/0" for valijson's {"<root>", "[a]", "[0]"}.
std::string PlaceOf(const std::vector<std::string>& context) {
  std::string place;
  for (size_t i = 1; i < context.size(); ++i) {
    absl::string_view part = context[i];
    absl::ConsumePrefix(&part, "[");
    absl::ConsumeSuffix(&part, "]");
    place = Below(place, ToStd(part));
  }
  return place.empty() ? "/" : place;
}

}  // namespace

struct JsonSchema::Compiled {
  valijson::Schema schema;
  Patterns patterns;
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
  if (json.dump(-1, ' ', false, Json::error_handler_t::replace).size() > kMaxText) {
    return Fault("", "it has more than 256 KiB without references");
  }
  try {
    // A schema of true or false is an object for valijson.
    const Json plain = json.is_object()      ? WithoutRegularExpressions(json)
                       : json == Json(false) ? Json{{"not", Json::object()}}
                                             : Json::object();
    const valijson::adapters::NlohmannJsonAdapter adapter(plain);
    valijson::SchemaParser().populateSchema(adapter, compiled->schema);
  } catch (const std::exception& e) {
    return Fault("", e.what());
  }
  return JsonSchema(std::move(json), std::move(compiled));
}

std::vector<std::string> JsonSchema::Validate(const Json& value) const {
  if (DepthOf(value, kMaxValueDepth + 1) > kMaxValueDepth) {
    return {absl::StrCat("/: more than ", kMaxValueDepth, " levels")};
  }
  std::vector<std::string> faults;
  valijson::ValidationResults results;
  const valijson::adapters::NlohmannJsonAdapter adapter(value);
  valijson::Validator validator;
  validator.validate(compiled_->schema, adapter, &results);
  for (const valijson::ValidationResults::Error& error : results) {
    if (faults.size() >= kMaxFaults) break;
    faults.push_back(absl::StrCat(PlaceOf(error.context), ": ", error.description));
  }
  CheckPatterns(json_, compiled_->patterns, value, "", &faults);
  return faults;
}

}  // namespace muster
