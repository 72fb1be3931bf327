// The configuration as a table with one row per field, from which the file, the environment, the
// published schema and the documentation are checked.
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

// One field of a configuration and the location of its value.
struct ConfigField {
  using Target = std::variant<std::string*, std::vector<std::string>*, int64_t*, bool*,
                              std::chrono::milliseconds*,
                              std::optional<std::chrono::system_clock::time_point>*>;

  std::string name;  // in the JSON file
  // Variables that set it; the first one that is set and not empty applies.
  std::vector<std::string> environment;
  Target target;
  std::string description;
  // If not empty: the only valid values.
  std::vector<std::string> choices;
  // The minimum of a number.
  int64_t least = 1;
  int64_t most = std::numeric_limits<int64_t>::max();
};

// Reads variables; std::getenv outside tests.
using EnvironmentReader = std::function<const char*(const char* name)>;

// Returns the fields of a client's Config. The pointers refer to `config`.
std::vector<ConfigField> ClientFields(Config& config);

// Returns the fields of the same file that only agents use; a client ignores them.
std::span<const std::string_view> AgentOnlyFields();

// Reads the values of the JSON text. Fails with INVALID_ARGUMENT (INVALID_CONFIG) unless it is one
// object of known fields with values of their types; the message for an unknown field suggests the
// nearest known one. Skips fields in `ignored`. `where` is the source's name in messages.
absl::Status ReadConfigJson(std::string_view json, std::string_view where,
                            std::span<const ConfigField> fields,
                            std::span<const std::string_view> ignored);

// Applies the variables of the environment. `*set` receives the names of the fields that they set.
absl::Status ReadConfigEnvironment(const EnvironmentReader& read,
                                   std::span<const ConfigField> fields, std::set<std::string>* set);

// Returns the type in the JSON schema: "string", "array", "integer" or "boolean"; durations ("5s",
// "1m30s") and times (RFC 3339) are strings.
std::string_view JsonType(const ConfigField& field);

// Derives missing values: run and node from the certificate, the key from its file. `set`: the
// fields that the environment set.
absl::Status CompleteConfig(Config& config, const std::set<std::string>& set);

}  // namespace muster::client

#endif  // MUSTER_SERVICES_CLIENT_CONFIG_FIELDS_H_
