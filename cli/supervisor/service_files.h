// The services of one machine: their programs, their configuration files, what they say of
// themselves.
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

// In the order of their start.
inline constexpr std::array<std::string_view, 4> kServices = {"aggregator", "status", "relay",
                                                              "gateway"};

// The path of muster-NAME: in $MUSTER_LIBEXEC if that is set, else beside this program. NOT_FOUND
// (PROGRAM_MISSING).
absl::StatusOr<std::string> ServiceProgram(std::string_view service);

// Keys at the top level of a service's YAML file, with their values as YAML.
using ConfigValues = std::map<std::string, std::string>;

// `text` with the values of these keys. A line of the key that is there, also one that is commented
// out ("# key: ..."), is replaced in its place, all else stays as it is; a key that is not there is
// added at the end.
std::string WithValues(std::string text, const ConfigValues& values);

// "text" as YAML, in double quotes; and a list of those.
std::string YamlText(std::string_view text);
std::string YamlList(const std::vector<std::string>& list);

// Makes the service's configuration file where there is none: what `muster-NAME --print-config`
// says with `defaults` set. Then sets `chosen`, which the user asked for, whether the file is new
// or not. Tells whether an existing file was changed.
absl::StatusOr<bool> WriteConfig(const Home& home, std::string_view service,
                                 const ConfigValues& defaults, const ConfigValues& chosen);

// The address in the file's key `listen`; empty if there is no file. INVALID_ARGUMENT
// (INVALID_CONFIG) if it cannot be read.
absl::StatusOr<std::optional<HostPort>> ListenAddress(const Home& home, std::string_view service);

// The text of a top-level key of the file; empty if there is no file or no such key.
absl::StatusOr<std::string> ConfigValue(const Home& home, std::string_view service,
                                        const std::string& key);

// A top-level list of texts; empty if there is none.
absl::StatusOr<std::vector<std::string>> ConfigList(const Home& home, std::string_view service,
                                                    const std::string& key);

// What a running service wrote of its addresses: {"aggregator": "127.0.0.1:7440", "inspection":
// "127.0.0.1:40001"}. Empty if it has not yet.
std::map<std::string, std::string> ReadAddresses(const Home& home, std::string_view service);

// Whether GET /readyz at that address (host:port) answers 200; else why not.
absl::Status CheckReady(const std::string& inspection_address);

}  // namespace muster::supervisor

#endif  // MUSTER_CLI_SUPERVISOR_SERVICE_FILES_H_
