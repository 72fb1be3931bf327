#include "services/common/rpc/connection_limits.h"

#include <optional>

#include "services/common/identity/identity.h"
#include "services/common/rpc/limits.h"

namespace muster {
namespace {

// The fleet of the URI is that of its certificate, which was verified. The host of a run's URI is
// RUN.FLEET.
std::optional<Role> RoleOfUri(std::string_view uri) {
  constexpr std::string_view kScheme = "spiffe://";
  if (!uri.starts_with(kScheme)) return std::nullopt;
  const std::string_view rest = uri.substr(kScheme.size());
  const std::string_view host = rest.substr(0, rest.find('/'));
  for (const std::string_view fleet : {host, host.substr(host.find('.') + 1)}) {
    const auto identity = ParseIdentity(uri, fleet);
    if (identity.ok()) return RoleOf(*identity);
  }
  return std::nullopt;
}

}  // namespace

ConnectionLimits ConnectionLimitsOf(std::string_view uri) {
  constexpr ConnectionLimits kSmallest = {kMaxViewerMessageBytes, kMaxStreamsOfNode};
  const std::optional<Role> role = RoleOfUri(uri);
  if (!role) return kSmallest;
  switch (*role) {
    case Role::kOperator:
    case Role::kAggregator:
    case Role::kStatus:
    case Role::kGateway:
    case Role::kRelay:
    case Role::kJobs:
      return {kMaxMessageBytes, kMaxStreamsPerConnection};
    case Role::kRunPlugin:  // many machines may share a connection
      return {kMaxSourceMessageBytes, kMaxStreamsPerConnection};
    case Role::kNode:
    case Role::kRunNode:
      return {kMaxSourceMessageBytes, kMaxStreamsOfNode};
    case Role::kRunViewer:
    case Role::kRunListener:
      return kSmallest;
  }
  return kSmallest;
}

}  // namespace muster
