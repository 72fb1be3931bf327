#include "services/relay/child_role.h"

#include <utility>

namespace muster {

ChildRole::ChildRole(const RoleParts& parts, std::vector<HostPort> parents,
                     ParentLink::HandleShares handle_shares) {
  AttachClientOptions options;
  options.targets = std::move(parents);
  options.fleet = parts.self.fleet();
  options.uri = parts.self.uri();
  options.identity_folder = parts.self.published_folder();
  options.is_relay = true;
  options.relay_targets = parts.config.advertise;
  const AttachRuntime runtime{parts.clock, parts.threads.timers(), parts.threads.background()};
  link_ = std::make_unique<ParentLink>(
      std::move(options), ParentLink::Parts{parts.topology, parts.trust, parts.dispatcher, runtime},
      parts.config.interval, std::move(handle_shares));
}

}  // namespace muster
