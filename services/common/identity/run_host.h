// Host names of runs. If the listeners for legacy clients share a port, each run has its own name,
// which follows the operator's pattern.
#ifndef MUSTER_SERVICES_COMMON_IDENTITY_RUN_HOST_H_
#define MUSTER_SERVICES_COMMON_IDENTITY_RUN_HOST_H_

#include <string>
#include <string_view>

namespace muster {

// The rule for patterns, for messages.
inline constexpr std::string_view kRunHostRule =
    "a DNS name in lower case with {run} in it once, such as {run}.collect.example.org";

// Returns true if a run id (16 hex digits) in place of "{run}" makes a DNS name of at least two
// labels.
bool IsRunHostPattern(std::string_view pattern);

// Returns the host name of a run. `pattern` must be valid.
std::string HostOfRun(std::string_view pattern, std::string_view run);

// Returns true if a host is the name of this run alone, that is, if it contains the run id.
// Advertised names and addresses, which all runs share, do not.
bool IsHostOfRun(std::string_view host, std::string_view run);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_IDENTITY_RUN_HOST_H_
