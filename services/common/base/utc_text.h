// Times for people.
#ifndef MUSTER_SERVICES_COMMON_BASE_UTC_TEXT_H_
#define MUSTER_SERVICES_COMMON_BASE_UTC_TEXT_H_

#include <string>

#include "absl/time/time.h"

namespace muster {

// Returns a time to the second, such as "2026-01-31 15:04:05 UTC". Thread-safe.
std::string UtcText(absl::Time time);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_BASE_UTC_TEXT_H_
