// Names that users give to new things.
#ifndef MUSTER_SERVICES_COMMON_BASE_NEW_NAME_H_
#define MUSTER_SERVICES_COMMON_BASE_NEW_NAME_H_

#include <string_view>

#include "absl/status/status.h"

namespace muster {

// Accepts the names of ValidateName that do not begin with '-', which a command line takes for an
// option. Names that exist already are checked with ValidateName.
absl::Status ValidateNewName(std::string_view what, std::string_view name);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_BASE_NEW_NAME_H_
