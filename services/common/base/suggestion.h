// "Did you mean ...?"
#ifndef MUSTER_SERVICES_COMMON_BASE_SUGGESTION_H_
#define MUSTER_SERVICES_COMMON_BASE_SUGGESTION_H_

#include <span>
#include <string>
#include <string_view>

namespace muster {

// "; did you mean X?" for the name in `known` that is nearest to `name`, to be put behind a
// message; empty if none is near. A name with groups ("limits.threads") is near to one with the
// same last part.
std::string Suggestion(std::string_view name, std::span<const std::string> known);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_BASE_SUGGESTION_H_
