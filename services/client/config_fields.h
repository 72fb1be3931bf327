// Configuration as a table: one row a field, from which the file, the environment, the published
// schema and the documentation are checked.
#ifndef MUSTER_SERVICES_CLIENT_CONFIG_FIELDS_H_
#define MUSTER_SERVICES_CLIENT_CONFIG_FIELDS_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "services/client/client.h"

namespace muster::client {

// One field of a configuration and where its value goes.
struct ConfigField {
  using Target = std::variant<std::string*, std::vector<std::string>*, int64_t*, bool*,
                              std::chrono::milliseconds*,
                              std::optional<std::chrono::system_clock::time_point>*>;

  std::string name;  // in the JSON file
  // Variables that set it; the first that is there and not empty wins.
  std::vector<std::string> environment;
  Target target;
  std::string description;
  // If not empty: the only values.
  std::vector<std::string> choices;
  // Of a number.
  int64_t least = 1;
  int64_t most = std::numeric_limits<int64_t>::max();
};

// Reads variables; std::getenv outside tests.
using EnvironmentReader = std::function<const char*(const char* name)>;

// The fields of a client's Config. The pointers lead into `config`.
std::vector<ConfigField> ClientFields(Config& config);

// Fields of the same file that are an agent's alone: a client skips them.
std::span<const std::string_view> AgentOnlyFields();

// Takes the values of the JSON text. INVALID_ARGUMENT (CONFIG_INVALID) for anything but one object
// of known fields with values of their types; an unknown field's message names the nearest known
// one. Fields in `ignored` are skipped. `where` is named in messages.
absl::Status ReadConfigJson(std::string_view json, std::string_view where,
                            std::span<const ConfigField> fields,
                            std::span<const std::string_view> ignored);

// Takes what the environment sets, over what is there. `*set` receives the names of fields.
absl::Status ReadConfigEnvironment(const EnvironmentReader& read,
                                   std::span<const ConfigField> fields, std::set<std::string>* set);

// "string", "array", "integer", "boolean": the type in the JSON schema; a duration ("5s", "1m30s")
// and a time (RFC 3339) are strings.
std::string_view JsonType(const ConfigField& field);

// What of a Config follows from the rest: run and node from the certificate, the key from its file.
// `set`: the fields that came from the environment.
absl::Status CompleteConfig(Config& config, const std::set<std::string>& set);

}  // namespace muster::client

#endif  // MUSTER_SERVICES_CLIENT_CONFIG_FIELDS_H_
