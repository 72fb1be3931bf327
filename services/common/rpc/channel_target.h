// The addresses of a service in the form that gRPC resolves.
#ifndef MUSTER_SERVICES_COMMON_RPC_CHANNEL_TARGET_H_
#define MUSTER_SERVICES_COMMON_RPC_CHANNEL_TARGET_H_

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/types/span.h"
#include "services/common/base/text_values.h"

namespace muster {

// An address of the form "wss://host:port" names a gateway, through which a tunnel leads to the
// root relay (services/common/tunnel). Its HostPort has the host "wss://host".
bool IsTunnel(const HostPort& address);
bool IsTunnel(std::string_view text);

// Parses "host:port" and "wss://host:port" texts. A text that is no address becomes a host without
// a port: connections to it fail.
std::vector<HostPort> ParseTargets(absl::Span<const std::string> texts);

// Returns the numeric addresses of a DNS name.
using ResolveName = std::function<std::vector<std::string>(const std::string& name)>;

// Blocks until the system's resolver has answered.
std::vector<std::string> ResolveBySystem(const std::string& name);

// Returns whether ChannelTarget resolves names of these addresses.
bool NeedsResolution(absl::Span<const HostPort> addresses);

// Returns one target for all addresses, in their order: the first that answers is used. gRPC
// resolves a single DNS name, again for each connection. It has no target for several names, so
// these are resolved here, once (service_channel.h does so again); a name without addresses is
// skipped.
std::string ChannelTarget(absl::Span<const HostPort> addresses,
                          const ResolveName& resolve = ResolveBySystem);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_RPC_CHANNEL_TARGET_H_
