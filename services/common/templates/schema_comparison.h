// Which of two schemas admits more.
#ifndef MUSTER_SERVICES_COMMON_TEMPLATES_SCHEMA_COMPARISON_H_
#define MUSTER_SERVICES_COMMON_TEMPLATES_SCHEMA_COMPARISON_H_

#include <string>

#include "services/common/templates/json_schema.h"

namespace muster {

// Returns why a value that is valid by `narrow` may be invalid by `wide`, and where; empty if it
// cannot be. Differences that the comparison of keywords cannot decide are such reasons, too:
// combinations and patterns have to be equal.
std::string WhyNotNarrower(const JsonSchema& narrow, const JsonSchema& wide);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_TEMPLATES_SCHEMA_COMPARISON_H_
