// Serialises JSON whose strings may contain any bytes.
#ifndef MUSTER_SERVICES_COMMON_ARCHIVE_JSON_TEXT_H_
#define MUSTER_SERVICES_COMMON_ARCHIVE_JSON_TEXT_H_

#include <nlohmann/json.hpp>
#include <string>

namespace muster {

// Replaces bytes that are not UTF-8 by U+FFFD (the library throws by default). `indent` -1: one
// line.
inline std::string JsonText(const nlohmann::ordered_json& value, int indent = -1) {
  return value.dump(indent, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_ARCHIVE_JSON_TEXT_H_
