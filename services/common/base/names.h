// Names that become parts of paths, URIs and log lines.
#ifndef MUSTER_SERVICES_COMMON_BASE_NAMES_H_
#define MUSTER_SERVICES_COMMON_BASE_NAMES_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace muster {

inline constexpr size_t kMaxName = 253;      // bytes of a run's, plugin's or node's name
inline constexpr size_t kMaxFileName = 255;  // bytes of a file name on Linux

// Accepts 1 to 253 of [A-Za-z0-9._-] that do not begin with a dot. Fails with INVALID_ARGUMENT
// (INVALID_NAME); the message contains `what` ("node", "field plugin") and the cause.
absl::Status ValidateName(std::string_view what, std::string_view name);

// Returns the name under which the file `raw` of a sender is stored: at most 255 bytes of printable
// UTF-8 without '/' or '\', and never empty, "." or "..". Does not change ordinary names. Two
// unusual names may have the same result, so each file needs a separate folder.
std::string SafeFileName(std::string_view raw);

// Returns "n1, n2 and 3 more": at most `most` of the names.
std::string ListNames(std::vector<std::string> names, size_t most);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_BASE_NAMES_H_
