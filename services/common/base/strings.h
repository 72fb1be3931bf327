// Bridges between the standard string view and Abseil's own.
//
// Debian's Abseil is built with its own string_view, without implicit conversion to or
// from std::string_view. Our headers use the standard one; these functions convert for Abseil.
#ifndef MUSTER_SERVICES_COMMON_BASE_STRINGS_H_
#define MUSTER_SERVICES_COMMON_BASE_STRINGS_H_

#include <string_view>

#include "absl/strings/string_view.h"

namespace muster {

inline absl::string_view ToAbsl(std::string_view s) { return {s.data(), s.size()}; }
inline std::string_view ToStd(absl::string_view s) { return {s.data(), s.size()}; }

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_BASE_STRINGS_H_
