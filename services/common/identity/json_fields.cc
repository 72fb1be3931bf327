#include "services/common/identity/json_fields.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace muster {
namespace {

using Json = nlohmann::ordered_json;

bool IsText(const Json& json) {
  return json.is_string() && !json.get_ref<const std::string&>().empty();
}

}  // namespace

JsonFields::JsonFields(std::string_view text)
    : json_(Json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false)) {
  if (!json_.is_object()) {
    json_ = Json::object();
    fault_ = "it is not a JSON object";
  }
}

Json::iterator JsonFields::Find(const char* name) {
  if (!fault_.empty()) return json_.end();
  const auto it = json_.find(name);
  if (it == json_.end()) fault_ = absl::StrCat("field \"", name, "\" is missing");
  return it;
}

void JsonFields::Text(const char* name, std::string* value) {
  const auto it = Find(name);
  if (it == json_.end()) return;
  if (!IsText(*it)) {
    fault_ = absl::StrCat("field \"", name, "\" must be a text");
    return;
  }
  *value = std::move(it->get_ref<std::string&>());
  json_.erase(it);
}

void JsonFields::OptionalText(const char* name, std::string* value) {
  if (json_.contains(name)) Text(name, value);
}

void JsonFields::List(const char* name, std::vector<std::string>* values) {
  const auto it = Find(name);
  if (it == json_.end()) return;
  if (!it->is_array() || !std::ranges::all_of(*it, IsText)) {
    fault_ = absl::StrCat("field \"", name, "\" must be a list of texts");
    return;
  }
  for (Json& item : *it) values->push_back(std::move(item.get_ref<std::string&>()));
  json_.erase(it);
}

void JsonFields::OptionalList(const char* name, std::vector<std::string>* values) {
  if (json_.contains(name)) List(name, values);
}

std::string JsonFields::Fault() const {
  if (!fault_.empty() || json_.empty()) return fault_;
  return absl::StrCat("field \"", json_.begin().key(), "\" is not known");
}

}  // namespace muster
