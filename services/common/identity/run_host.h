// Host names of runs: where the listeners for old clients share a port, each run has a name of its
// own, made from the operator's pattern.
#ifndef MUSTER_SERVICES_COMMON_IDENTITY_RUN_HOST_H_
#define MUSTER_SERVICES_COMMON_IDENTITY_RUN_HOST_H_

#include <string>
#include <string_view>

namespace muster {

// What a pattern has to be, for messages.
inline constexpr std::string_view kRunHostRule =
    "a DNS name in lower case with {run} in it once, such as {run}.collect.example.org";

// Whether a run's id (16 hex digits) in place of "{run}" makes a DNS name of at least two labels.
bool IsRunHostPattern(std::string_view pattern);

// The host name of a run. The pattern must be one.
std::string HostOfRun(std::string_view pattern, std::string_view run);

// Whether a host is the name of this run alone: it has the run's id in it. Advertised names and
// addresses, which all runs share, have not.
bool IsHostOfRun(std::string_view host, std::string_view run);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_IDENTITY_RUN_HOST_H_
