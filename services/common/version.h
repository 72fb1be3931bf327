// The version of everything in this repository.
#ifndef MUSTER_SERVICES_COMMON_VERSION_H_
#define MUSTER_SERVICES_COMMON_VERSION_H_

#include <string_view>

namespace muster {

inline constexpr std::string_view kVersion = "0.1.0";

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_VERSION_H_
