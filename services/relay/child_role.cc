#include "services/relay/child_role.h"

#include "absl/status/status.h"
#include "services/common/errors/joining.h"
#include "services/common/identity/pem_files.h"

namespace muster {

absl::StatusOr<std::unique_ptr<ChildRole>> ChildRole::Start(
    const RoleParts& parts, std::vector<HostPort> parents, ParentLink::HandleShares handle_shares) {
  const std::string& folder = parts.config.state_folder;
  const auto command_ca = ReadChainFile(folder + "/command-ca.pem");
  if (absl::IsNotFound(command_ca.status())) {
    return errors::NoRelayIdentity(
        folder, "contains no command-ca.pem, so no list of revoked signers can be verified");
  }
  if (!command_ca.ok()) return command_ca.status();
  AttachClientOptions options;
  options.targets = std::move(parents);
  options.fleet = parts.self.fleet();
  options.uri = parts.self.uri();
  options.identity_folder = parts.self.published_folder();
  options.is_relay = true;
  options.relay_targets = parts.config.advertise;
  const AttachRuntime runtime{parts.clock, parts.threads.timers(), parts.threads.background()};
  return std::unique_ptr<ChildRole>(new ChildRole(
      std::make_unique<ParentLink>(std::move(options),
                                   ParentLink::Parts{parts.topology, parts.trust, parts.dispatcher,
                                                     runtime, command_ca->front()},
                                   parts.config.interval, std::move(handle_shares))));
}

}  // namespace muster
