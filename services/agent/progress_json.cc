#include "services/agent/progress_json.h"

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "services/client/clean_text.h"
#include "services/common/errors/heartbeats.h"

namespace muster {
namespace {

using Json = nlohmann::json;

bool Take(const Json& value, std::string* to) {
  if (!value.is_string()) return false;
  *to = value.get<std::string>();
  return true;
}

bool Take(const Json& value, bool* to) {
  if (!value.is_boolean()) return false;
  *to = value.get<bool>();
  return true;
}

bool Take(const Json& value, int64_t* to) {
  if (!value.is_number_integer()) return false;
  if (value.is_number_unsigned() && value.get<uint64_t>() > std::numeric_limits<int64_t>::max()) {
    return false;
  }
  *to = value.get<int64_t>();
  return true;
}

bool Take(const Json& value, std::vector<std::string>* to) {
  if (!value.is_array()) return false;
  to->clear();
  for (const Json& name : value) {
    if (!Take(name, &to->emplace_back())) return false;
  }
  return true;
}

}  // namespace

absl::StatusOr<client::Progress> ParseProgressJson(std::string_view text) {
  // Such bytes are valid only within strings, and their replacement has three bytes.
  const Json json = Json::parse(client::CleanText(text, 3 * text.size()), nullptr,
                                /*allow_exceptions=*/false);
  if (!json.is_object()) return errors::InvalidProgress("it is not a JSON object");
  client::Progress progress;
  bool fits = true;
  const auto field = [&](const char* name, auto* to) {
    const auto member = json.find(name);
    if (member != json.end() && !member->is_null()) fits = fits && Take(*member, to);
  };
  field("msg", &progress.message);
  field("total", &progress.total);
  field("completed", &progress.completed);
  field("failures", &progress.failures);
  field("errors", &progress.errors);
  field("appendtotals", &progress.append_totals);
  field("appendcompleted", &progress.append_completed);
  field("appendfailing", &progress.append_failing);
  if (!fits) return errors::InvalidProgress("a field has another type than in Sonobuoy");
  return progress;
}

}  // namespace muster
