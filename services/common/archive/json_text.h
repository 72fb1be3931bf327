// JSON as text, whatever bytes its strings hold.
#ifndef MUSTER_SERVICES_COMMON_ARCHIVE_JSON_TEXT_H_
#define MUSTER_SERVICES_COMMON_ARCHIVE_JSON_TEXT_H_

#include <nlohmann/json.hpp>
#include <string>

namespace muster {

// Bytes that are no UTF-8 become U+FFFD (by default the library throws). `indent` -1: one line.
inline std::string JsonText(const nlohmann::ordered_json& value, int indent = -1) {
  return value.dump(indent, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_ARCHIVE_JSON_TEXT_H_
