// JSON whose numbers keep their text.
//
// A number that C++ would round, or write otherwise, is a binary value (json::binary) with its
// text, such as "0.10" or "1234567890123456789012". JSON text has no binary values.
// Values with such numbers must not be written with dump().
#ifndef MUSTER_SERVICES_COMMON_TEMPLATES_EXACT_JSON_H_
#define MUSTER_SERVICES_COMMON_TEMPLATES_EXACT_JSON_H_

#include <optional>
#include <string>
#include <string_view>

#include "nlohmann/json.hpp"

namespace muster {

// The arrays and objects that may contain each other.
inline constexpr int kMaxJsonDepth = 32;

// kTwice: an object has two members of one name, of which a reader may take either (RFC 8259, 4).
enum class JsonFault { kNone, kNotJson, kTooDeep, kTwice };

// Returns what is wrong with a text, such as "is not JSON".
std::string FaultText(JsonFault fault);

// `BasicJson` is nlohmann::json, or nlohmann::ordered_json, which keeps the order of members.
template <typename BasicJson>
struct ExactJson {
  BasicJson value;  // null if there is a fault
  JsonFault fault = JsonFault::kNone;
};

// Parses one JSON text. A number whose exponent is beyond that of a double is no JSON.
template <typename BasicJson = nlohmann::json>
ExactJson<BasicJson> ParseExactJson(std::string_view text);

// Returns JSON with the texts of the numbers, on one line. With `indent` above 0, each member and
// element has a line. Bytes that are not UTF-8 are replaced.
template <typename BasicJson>
std::string ExactJsonText(const BasicJson& value, int indent = 0);

// Returns the text of a number that is not exact otherwise.
std::optional<std::string_view> NumberText(const nlohmann::json& value);

// Returns the value with doubles, which are rounded, for checks.
nlohmann::json WithDoubles(const nlohmann::json& value);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_TEMPLATES_EXACT_JSON_H_
