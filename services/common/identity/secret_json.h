// JSON that must not remain in memory.
#ifndef MUSTER_SERVICES_COMMON_IDENTITY_SECRET_JSON_H_
#define MUSTER_SERVICES_COMMON_IDENTITY_SECRET_JSON_H_

#include <openssl/crypto.h>

#include <string>
#include <string_view>

#include "nlohmann/json.hpp"

namespace muster {

// Wipes the texts of the values, at any depth; names are kept.
inline void WipeTexts(nlohmann::json* json) {
  if (json->is_string()) {
    auto& text = json->get_ref<std::string&>();
    OPENSSL_cleanse(text.data(), text.size());
  } else if (json->is_structured()) {
    for (nlohmann::json& element : *json) WipeTexts(&element);
  }
}

// Parses JSON of at most 32 levels, so that no function runs out of stack on it. Other text is a
// discarded value.
inline nlohmann::json ParseSecretJson(std::string_view text) {
  constexpr int kMaxLevels = 32;
  bool too_deep = false;
  nlohmann::json json = nlohmann::json::parse(
      text,
      [&](int depth, nlohmann::json::parse_event_t, nlohmann::json&) {
        too_deep = too_deep || depth > kMaxLevels;
        return !too_deep;
      },
      /*allow_exceptions=*/false);
  if (!too_deep) return json;
  WipeTexts(&json);
  return {nlohmann::json::value_t::discarded};
}

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_IDENTITY_SECRET_JSON_H_
