// JSON that must not remain in memory.
#ifndef MUSTER_SERVICES_COMMON_IDENTITY_SECRET_JSON_H_
#define MUSTER_SERVICES_COMMON_IDENTITY_SECRET_JSON_H_

#include <openssl/crypto.h>

#include <string>

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

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_IDENTITY_SECRET_JSON_H_
