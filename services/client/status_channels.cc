#include "services/client/status_channels.h"

#include "services/common/rpc/channel.h"

namespace muster::client {

std::shared_ptr<const StatusChannels> MakeStatusChannels(const std::vector<std::string>& targets,
                                                         const std::string& fleet_ca_pem,
                                                         const std::string& client_key_pem,
                                                         const SenderIdentity& identity) {
  const ChannelIdentity us{identity.identity().fleet, fleet_ca_pem, identity.chain_pem(),
                           client_key_pem};
  const auto credentials = MakeChannelCredentials(us, {ServiceRole::kStatus, ServiceRole::kRelay});
  auto channels = std::make_shared<StatusChannels>();
  for (const std::string& target : targets) {
    channels->all.push_back(MakeChannel(target, credentials));
  }
  return channels;
}

}  // namespace muster::client
