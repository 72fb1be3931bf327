// The programs, configuration files and addresses of the services of one machine.
#ifndef MUSTER_CLI_SUPERVISOR_SERVICE_FILES_H_
#define MUSTER_CLI_SUPERVISOR_SERVICE_FILES_H_

#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "services/common/base/text_values.h"
#include "services/common/identity/home.h"

namespace muster::supervisor {

// The services in the order of their start.
inline constexpr std::array<std::string_view, 5> kServices = {"aggregator", "status", "relay",
                                                              "jobs", "gateway"};

// Returns the path of muster-NAME: in $MUSTER_LIBEXEC if it is set, else in the folder of this
// program. NOT_FOUND (PROGRAM_MISSING).
absl::StatusOr<std::string> ServiceProgram(std::string_view service);

// Keys at the top level of a service's YAML file, with their values as YAML.
using ConfigValues = std::map<std::string, std::string>;

// Returns `text` with these values. Replaces the line of a key in place, also if it is commented
// out ("# key: ..."), and appends a missing key. Other lines are unchanged.
std::string WithValues(std::string text, const ConfigValues& values);

// Return YAML: a text in double quotes, or a list of such texts.
std::string YamlText(std::string_view text);
std::string YamlList(const std::vector<std::string>& list);

// Creates the service's configuration file if it does not exist, from `muster-NAME --print-config`
// with `defaults`. Then sets `chosen`, the values that the user requested, in a new or existing
// file.
absl::Status WriteConfig(const Home& home, std::string_view service, const ConfigValues& defaults,
                         const ConfigValues& chosen);

// Returns true if WriteConfig with these chosen values would not change the existing file.
absl::StatusOr<bool> HasConfigValues(const Home& home, std::string_view service,
                                     const ConfigValues& chosen);

// Returns the address in the key `listen` of the file, or nothing if the file does not exist.
// INVALID_ARGUMENT (INVALID_CONFIG) if it is invalid.
absl::StatusOr<std::optional<HostPort>> ListenAddress(const Home& home, std::string_view service);

// Returns the text of a top-level key, or an empty text if the file or the key does not exist.
absl::StatusOr<std::string> ConfigValue(const Home& home, std::string_view service,
                                        const std::string& key);

// Returns the texts of a top-level list, or an empty list if it does not exist.
absl::StatusOr<std::vector<std::string>> ConfigList(const Home& home, std::string_view service,
                                                    const std::string& key);

// Returns the addresses that a running service has written: {"aggregator": "127.0.0.1:7440",
// "inspection": "127.0.0.1:40001"}. Returns nothing if it has not written them yet.
std::map<std::string, std::string> ReadAddresses(const Home& home, std::string_view service);

// Returns the name of an address among those of all services: "aggregator" for the service itself,
// "aggregator_join" for its other addresses.
std::string AddressName(std::string_view service, const std::string& name);

// Returns OK if GET /readyz at this address (host:port) answers 200, else the reason.
absl::Status CheckReady(const std::string& inspection_address);

}  // namespace muster::supervisor

#endif  // MUSTER_CLI_SUPERVISOR_SERVICE_FILES_H_
