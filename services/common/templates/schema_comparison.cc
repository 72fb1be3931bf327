#include "services/common/templates/schema_comparison.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "services/common/templates/schema_keywords.h"

namespace muster {
namespace {

using Json = nlohmann::json;

const Json* Find(const Json& schema, const char* keyword) {
  if (!schema.is_object()) return nullptr;
  const auto found = schema.find(keyword);
  return found == schema.end() ? nullptr : &*found;
}

// Returns the types that a schema admits; nothing for all.
std::optional<std::set<std::string>> TypesOf(const Json& schema) {
  const Json* type = Find(schema, "type");
  if (type == nullptr) return std::nullopt;
  std::set<std::string> types;
  for (const Json& one : type->is_array() ? *type : Json::array({*type})) {
    if (one.is_string()) types.insert(one.get<std::string>());
  }
  return types;
}

// Returns whether a value of this type can be valid.
bool MayBe(const Json& schema, const std::string& type) {
  const auto types = TypesOf(schema);
  return !types || types->contains(type) || (type == "number" && types->contains("integer"));
}

// Compares two schemas keyword by keyword.
class Comparison {
 public:
  // Returns the first reason, with its place.
  std::string Compare(const Json& narrow, const Json& wide, const std::string& place) {
    if (narrow == wide || wide == Json(true) || narrow == Json(false)) return "";
    if (wide == Json(false)) return At(place, "the type admits no value");
    if (const Json* values = Finite(narrow); values != nullptr) {
      return CompareValues(*values, wide, place);
    }
    std::string why = CompareTypes(narrow, wide, place);
    if (why.empty()) why = CompareBounds(narrow, wide, place);
    if (why.empty()) why = CompareOthers(narrow, wide, place);
    if (why.empty() && MayBe(narrow, "array")) why = CompareItems(narrow, wide, place);
    if (why.empty() && MayBe(narrow, "object")) why = CompareProperties(narrow, wide, place);
    return why;
  }

 private:
  static std::string At(const std::string& place, const std::string& why) {
    return absl::StrCat(place.empty() ? "/" : place, ": ", why);
  }

  // Returns the list of the only values that a schema admits, if it has one.
  const Json* Finite(const Json& schema) {
    if (const Json* values = Find(schema, "enum"); values != nullptr && values->is_array()) {
      return values;
    }
    const Json* value = Find(schema, "const");
    if (value == nullptr) return nullptr;
    constant_ = Json::array({*value});
    return &constant_;
  }

  // Each listed value is checked. The message names its number: the value may be secret.
  std::string CompareValues(const Json& values, const Json& wide, const std::string& place) {
    auto known = parsed_.find(&wide);
    if (known == parsed_.end()) {
      auto schema = JsonSchema::Parse(wide, nullptr);
      if (!schema.ok()) return At(place, "the schema of the type cannot be compared");
      known = parsed_.emplace(&wide, *std::move(schema)).first;
    }
    for (size_t i = 0; i < values.size(); ++i) {
      work_ += known->second.WorkOf(values[i]);
      if (work_ > kMaxSchemaWork) return At(place, "it is too large to be compared");
      if (!known->second.Validate(values[i]).empty()) {
        return At(place, absl::StrCat("the type does not admit value ", i + 1));
      }
    }
    return "";
  }

  static std::string CompareTypes(const Json& narrow, const Json& wide, const std::string& place) {
    const auto admitted = TypesOf(wide);
    if (!admitted) return "";
    const auto types = TypesOf(narrow);
    if (!types) return At(place, "it has no \"type\", the type has one");
    for (const std::string& type : *types) {
      const bool fits =
          admitted->contains(type) || (type == "integer" && admitted->contains("number"));
      if (!fits) return At(place, absl::StrCat("the type does not admit ", type));
    }
    return "";
  }

  static std::string CompareBounds(const Json& narrow, const Json& wide, const std::string& place) {
    struct Bound {
      const char* type;  // of the values that it bounds
      const char* keyword;
      bool upper;
      // A bound as well: beyond the limit, or at it if `reaches`.
      const char* other = nullptr;
      bool reaches = false;
    };
    static constexpr std::array<Bound, 10> kBounds = {
        {{"number", "minimum", false, "exclusiveMinimum", true},
         {"number", "maximum", true, "exclusiveMaximum", true},
         {"number", "exclusiveMinimum", false, "minimum", false},
         {"number", "exclusiveMaximum", true, "maximum", false},
         {"string", "minLength", false},
         {"string", "maxLength", true},
         {"array", "minItems", false},
         {"array", "maxItems", true},
         {"object", "minProperties", false},
         {"object", "maxProperties", true}}};
    for (const Bound& bound : kBounds) {
      const Json* limit = Find(wide, bound.keyword);
      if (limit == nullptr || !limit->is_number() || !MayBe(narrow, bound.type)) continue;
      const auto within = [&](const char* keyword, bool reaches) {
        const Json* own = keyword == nullptr ? nullptr : Find(narrow, keyword);
        if (own == nullptr || !own->is_number()) return false;
        if (*own == *limit) return reaches;
        return bound.upper ? *own < *limit : *own > *limit;
      };
      if (within(bound.keyword, true) || within(bound.other, bound.reaches)) continue;
      return At(place, absl::StrCat("\"", bound.keyword, "\" of the type is ", limit->dump(),
                                    "; it has to be as strict"));
    }
    return "";
  }

  // Keywords that are compared as they are.
  static std::string CompareOthers(const Json& narrow, const Json& wide, const std::string& place) {
    if (!wide.is_object()) return "";
    for (const auto& [name, value] : wide.items()) {
      const bool is_equal_only = name == "pattern" || name == "multipleOf" ||
                                 KindOfKeyword(name) == SchemaKeyword::kCombination;
      if (name == "uniqueItems" && value == Json(true) && MayBe(narrow, "array")) {
        const Json* own = Find(narrow, "uniqueItems");
        if (own == nullptr || *own != Json(true)) {
          return At(place, "\"uniqueItems\" of the type is true");
        }
      }
      if (name == "enum" || name == "const") {
        return At(place,
                  absl::StrCat("the type lists its values in \"", name, "\"; list some of them"));
      }
      if (!is_equal_only || (name == "pattern" && !MayBe(narrow, "string")) ||
          (name == "multipleOf" && !MayBe(narrow, "number"))) {
        continue;
      }
      const Json* own = Find(narrow, name.c_str());
      if (own == nullptr || *own != value) {
        return At(place, absl::StrCat("\"", name,
                                      "\" of the type has to be repeated unchanged: "
                                      "whether another one is narrower cannot be decided"));
      }
    }
    return "";
  }

  std::string CompareItems(const Json& narrow, const Json& wide, const std::string& place) {
    const Json* items = Find(wide, "items");
    if (items == nullptr) return "";
    const Json* own = Find(narrow, "items");
    return Compare(own == nullptr ? anything_ : *own, *items, place + "/items");
  }

  std::string CompareProperties(const Json& narrow, const Json& wide, const std::string& place) {
    const Json* required = Find(wide, "required");
    const Json* own_required = Find(narrow, "required");
    for (const Json& name : required == nullptr ? Json::array() : *required) {
      const bool kept =
          own_required != nullptr &&
          std::find(own_required->begin(), own_required->end(), name) != own_required->end();
      if (!kept) return At(place, absl::StrCat("the type requires ", name.dump()));
    }
    const Json* properties = Find(wide, "properties");
    const Json* own_properties = Find(narrow, "properties");
    const Json* others = Find(wide, "additionalProperties");
    const Json* own_others = Find(narrow, "additionalProperties");
    std::set<std::string> names;
    for (const Json* members : {properties, own_properties}) {
      if (members == nullptr) continue;
      for (const auto& [name, schema] : members->items()) names.insert(name);
    }
    const auto schema_of = [&](const Json* members, const Json* rest,
                               const std::string& name) -> const Json& {
      if (members != nullptr && members->contains(name)) return (*members)[name];
      return rest == nullptr ? anything_ : *rest;
    };
    for (const std::string& name : names) {
      std::string why =
          Compare(schema_of(own_properties, own_others, name), schema_of(properties, others, name),
                  absl::StrCat(place, "/properties/", name));
      if (!why.empty()) return why;
    }
    return Compare(own_others == nullptr ? anything_ : *own_others,
                   others == nullptr ? anything_ : *others, place + "/additionalProperties");
  }

  const Json anything_ = true;
  Json constant_;
  std::map<const Json*, JsonSchema> parsed_;  // of the type, by their places in memory
  int64_t work_ = 0;                          // of all checked values
};

}  // namespace

std::string WhyNotNarrower(const JsonSchema& narrow, const JsonSchema& wide) {
  return Comparison().Compare(narrow.json(), wide.json(), "");
}

}  // namespace muster
