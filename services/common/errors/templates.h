// Generated from templates.yaml by services/common/errors/generate: change that file.
// clang-format off
#ifndef MUSTER_SERVICES_COMMON_ERRORS_TEMPLATES_H_
#define MUSTER_SERVICES_COMMON_ERRORS_TEMPLATES_H_

#include <string_view>

#include "absl/status/status.h"

// Templates and deployments.
namespace muster::errors {

// INVALID_ARGUMENT, INVALID_SCHEMA.
absl::Status InvalidSchema(std::string_view place, std::string_view problem);
// INVALID_ARGUMENT, INVALID_DOCUMENT.
absl::Status InvalidDocument(std::string_view problem);

}  // namespace muster::errors

#endif  // MUSTER_SERVICES_COMMON_ERRORS_TEMPLATES_H_
