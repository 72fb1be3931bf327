// Suggestions for misspelt names.
#ifndef MUSTER_SERVICES_COMMON_BASE_SUGGESTION_H_
#define MUSTER_SERVICES_COMMON_BASE_SUGGESTION_H_

#include <span>
#include <string>
#include <string_view>

namespace muster {

// Returns "; did you mean X?" with the name in `known` that is most similar to `name`, as the end
// of a message, or an empty string if none is similar. A name with groups ("limits.threads") is
// similar to one with the same last part.
std::string Suggestion(std::string_view name, std::span<const std::string> known);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_BASE_SUGGESTION_H_
