// Names that travel into paths, URIs and logs.
#ifndef MUSTER_SERVICES_COMMON_BASE_NAMES_H_
#define MUSTER_SERVICES_COMMON_BASE_NAMES_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace muster {

inline constexpr size_t kMaxName = 253;      // bytes of a run's, plugin's or node's name
inline constexpr size_t kMaxFileName = 255;  // bytes of a file name on Linux

// Accepts 1 to 253 of [A-Za-z0-9._-] that do not begin with a dot. Otherwise INVALID_ARGUMENT
// (INVALID_NAME) with a message that says `what` ("node", "field plugin") is wrong and why.
absl::Status ValidateName(std::string_view what, std::string_view name);

// The name under which a file that a sender called `raw` is stored. Never empty, "." or "..", at
// most 255 bytes of printable UTF-8 without '/' or '\'; ordinary names stay as they are, and the
// same name always gives the same answer. Two odd names may give one: it is for a folder of one
// file's own.
std::string SafeFileName(std::string_view raw);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_BASE_NAMES_H_
