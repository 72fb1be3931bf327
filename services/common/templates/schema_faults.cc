#include "services/common/templates/schema_faults.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "services/common/base/strings.h"
#include "services/common/base/suggestion.h"
#include "services/common/base/utf8.h"
#include "services/common/templates/exact_json.h"

namespace muster {
namespace {

using Json = nlohmann::json;

constexpr size_t kMaxShown = 60;        // bytes of a value
constexpr size_t kMaxShownValues = 10;  // of an enum
constexpr size_t kMaxCompared = 128;    // bytes of a name; a comparison takes quadratic time

std::string Show(const Json& value) {
  std::string text = ExactJsonText(value);
  if (text.size() <= kMaxShown) return text;
  return absl::StrCat(ToAbsl(CutUtf8(text, kMaxShown)), "...");
}

bool IsNumber(const Json& value) { return value.is_number() || NumberText(value); }

// Returns the name of the value's type with its article.
std::string_view TypeOf(const Json& value) {
  if (const auto text = NumberText(value)) {
    const bool digits = text->find_first_of(".eE") == std::string_view::npos;
    return digits ? "an integer of more than 64 bits" : "a number";
  }
  switch (value.type()) {
    case Json::value_t::null:
      return "null";
    case Json::value_t::boolean:
      return "a boolean";
    case Json::value_t::number_integer:
    case Json::value_t::number_unsigned:
      return "an integer";
    case Json::value_t::number_float:
      return "a number";
    case Json::value_t::string:
      return "a string";
    case Json::value_t::array:
      return "an array";
    default:
      return "an object";
  }
}

std::string WithArticle(const std::string& type) {
  if (type == "null") return type;
  const bool vowel = std::string_view("aio").find(type.front()) != std::string_view::npos;
  return absl::StrCat(vowel ? "an " : "a ", type);
}

bool HasType(const Json& value, const std::string& type) {
  if (type == "number") return IsNumber(value);
  if (type == "integer") return value.is_number_integer();
  return TypeOf(value) == WithArticle(type);
}

// Returns the types of a schema as a list.
Json TypesOf(const Json& type) { return type.is_array() ? type : Json::array({type}); }

std::string OrList(const std::vector<std::string>& words) {
  if (words.size() < 2) return absl::StrJoin(words, "");
  return absl::StrCat(absl::StrJoin(words.begin(), words.end() - 1, ", "), " or ", words.back());
}

int64_t CharactersOf(const std::string& text) {
  return std::ranges::count_if(text, [](char c) { return (c & 0xC0) != 0x80; });
}

bool IsMultiple(const Json& value, const Json& of) {
  if (value.is_number_integer() && of.is_number_integer()) {
    return value.get<int64_t>() % of.get<int64_t>() == 0;
  }
  const double quotient = value.get<double>() / of.get<double>();
  return std::abs(quotient - std::round(quotient)) < 1e-9;
}

bool HasEqualItems(const Json& list) {
  std::set<std::string> seen;
  for (const Json& item : list) {
    if (!seen.insert(item.dump(-1, ' ', false, Json::error_handler_t::replace)).second) return true;
  }
  return false;
}

class Finder {
 public:
  Finder(const SchemaPatterns& patterns, SchemaChecks checks)
      : patterns_(patterns), common_(checks == SchemaChecks::kCommon) {}

  void Check(const Json& schema, const Json& value, const std::string& place) {
    if (faults_.size() >= kMaxSchemaFaults) return;
    if (common_ && schema == Json(false)) return Add(place, "no value is allowed here");
    if (!schema.is_object()) return;
    if (common_) CheckType(schema, value, place);
    if (common_) CheckValues(schema, value, place);
    if (IsNumber(value)) CheckNumber(schema, value, place);
    if (value.is_string()) CheckText(schema, value, place);
    if (value.is_array()) CheckArray(schema, value, place);
    if (value.is_object()) CheckObject(schema, value, place);
    const auto all = schema.find("allOf");
    if (!common_ || all == schema.end()) return;
    for (const Json& one : *all) Check(one, value, place);
  }

  std::vector<SchemaFault> Take() { return std::move(faults_); }

 private:
  template <typename... Parts>
  void Add(const std::string& place, const Parts&... parts) {
    if (faults_.size() < kMaxSchemaFaults) faults_.push_back({place, absl::StrCat(parts...)});
  }

  void CheckType(const Json& schema, const Json& value, const std::string& place) {
    const auto type = schema.find("type");
    if (type == schema.end()) return;
    std::vector<std::string> wanted;
    for (const Json& one : TypesOf(*type)) {
      if (HasType(value, one.get<std::string>())) return;
      wanted.push_back(WithArticle(one.get<std::string>()));
    }
    const bool named = value.is_null();
    Add(place, named ? "it" : Show(value), " is ", ToAbsl(TypeOf(value)), ", and must be ",
        OrList(wanted));
  }

  void CheckValues(const Json& schema, const Json& value, const std::string& place) {
    const auto constant = schema.find("const");
    const auto list = schema.find("enum");
    if (constant == schema.end() && list == schema.end()) return;
    const Json plain = WithDoubles(value);
    if (constant != schema.end() && plain != *constant) {
      Add(place, Show(value), " is not ", Show(*constant), ", the only value that is allowed");
    }
    if (list == schema.end() || !list->is_array()) return;
    if (std::ranges::find(*list, plain) != list->end()) return;
    std::vector<std::string> allowed;
    for (const Json& one : *list) {
      if (allowed.size() == kMaxShownValues) {
        allowed.push_back(absl::StrCat(list->size() - kMaxShownValues, " others"));
        break;
      }
      allowed.push_back(Show(one));
    }
    Add(place, Show(value), " is not one of the allowed values: ", OrList(allowed));
  }

  void CheckNumber(const Json& schema, const Json& value, const std::string& place) {
    const Json plain = WithDoubles(value);
    if (const auto of = schema.find("multipleOf"); of != schema.end() && !IsMultiple(plain, *of)) {
      Add(place, Show(value), " is not a multiple of ", of->dump());
    }
    if (!common_) return;
    const auto limit = [&](const char* keyword) -> const Json* {
      const auto found = schema.find(keyword);
      return found != schema.end() && found->is_number() ? &*found : nullptr;
    };
    if (const Json* least = limit("minimum"); least != nullptr && plain < *least) {
      Add(place, Show(value), " is below the minimum, ", least->dump());
    }
    if (const Json* most = limit("maximum"); most != nullptr && plain > *most) {
      Add(place, Show(value), " is above the maximum, ", most->dump());
    }
    if (const Json* below = limit("exclusiveMinimum"); below != nullptr && plain <= *below) {
      Add(place, Show(value), " must be above ", below->dump());
    }
    if (const Json* above = limit("exclusiveMaximum"); above != nullptr && plain >= *above) {
      Add(place, Show(value), " must be below ", above->dump());
    }
  }

  void CheckText(const Json& schema, const Json& value, const std::string& place) {
    const auto& text = value.get_ref<const std::string&>();
    if (const auto pattern = schema.find("pattern"); pattern != schema.end()) {
      const auto known = patterns_.find(pattern->get_ref<const std::string&>());
      if (known != patterns_.end() && !RE2::PartialMatch(text, *known->second)) {
        Add(place, Show(value), " does not match the pattern ", known->first);
      }
    }
    CheckCount(schema, CharactersOf(text), Show(value), place,
               {"minLength", "maxLength", "character"});
  }

  void CheckArray(const Json& schema, const Json& value, const std::string& place) {
    if (const auto unique = schema.find("uniqueItems");
        unique != schema.end() && *unique == Json(true) && HasEqualItems(WithDoubles(value))) {
      Add(place, "has equal elements");
    }
    CheckCount(schema, static_cast<int64_t>(value.size()), "the array", place,
               {"minItems", "maxItems", "element"});
    const auto items = schema.find("items");
    if (items == schema.end()) return;
    for (size_t i = 0; i < value.size(); ++i) {
      Check(*items, value[i], PlaceBelow(place, absl::StrCat(i)));
    }
  }

  struct CountWords {
    const char* least;
    const char* most;
    const char* unit;
  };

  void CheckCount(const Json& schema, int64_t count, const std::string& subject,
                  const std::string& place, const CountWords& words) {
    if (!common_) return;
    const auto add = [&](const char* bound, const Json& limit, const char* demand) {
      Add(place, subject, " has ", count, " ", words.unit, count == 1 ? "" : "s", ", and ", bound,
          " ", limit.dump(), limit == 1 ? " is " : " are ", demand);
    };
    const auto least = schema.find(words.least);
    if (least != schema.end() && least->is_number() && count < *least) {
      add("at least", *least, "required");
    }
    const auto most = schema.find(words.most);
    if (most != schema.end() && most->is_number() && count > *most) {
      add("at most", *most, "allowed");
    }
  }

  void CheckObject(const Json& schema, const Json& value, const std::string& place) {
    const auto properties = schema.find("properties");
    const auto others = schema.find("additionalProperties");
    for (const auto& [name, member] : value.items()) {
      if (faults_.size() >= kMaxSchemaFaults) return;
      if (properties != schema.end() && properties->contains(name)) {
        Check((*properties)[name], member, PlaceBelow(place, name));
      } else if (common_ && others != schema.end() && *others == Json(false)) {
        AddUnknown(properties == schema.end() ? Json::object() : *properties, name, place);
      } else if (others != schema.end()) {
        Check(*others, member, PlaceBelow(place, name));
      }
    }
    const auto required = schema.find("required");
    if (!common_ || required == schema.end() || !required->is_array()) return;
    for (const Json& name : *required) {
      if (!name.is_string() || value.contains(name.get<std::string>())) continue;
      Add(place, "the member ", Show(name), " is missing");
    }
  }

  void AddUnknown(const Json& properties, const std::string& name, const std::string& place) {
    std::vector<std::string> known;
    for (const auto& [member, schema] : properties.items()) {
      if (std::max(name.size(), member.size()) <= kMaxCompared) known.push_back(member);
    }
    Add(place, "the member ", Show(name), " is not allowed", Suggestion(name, known));
  }

  const SchemaPatterns& patterns_;
  const bool common_;
  std::vector<SchemaFault> faults_;
};

}  // namespace

std::string PlaceBelow(std::string_view place, std::string_view part) {
  return absl::StrCat(ToAbsl(place), "/",
                      absl::StrReplaceAll(ToAbsl(part), {{"~", "~0"}, {"/", "~1"}}));
}

std::vector<SchemaFault> FindSchemaFaults(const Json& schema, const SchemaPatterns& patterns,
                                          const Json& value, SchemaChecks checks) {
  Finder finder(patterns, checks);
  finder.Check(schema, value, "");
  return finder.Take();
}

}  // namespace muster
