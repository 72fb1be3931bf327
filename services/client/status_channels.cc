#include "services/client/status_channels.h"

namespace muster::client {

std::shared_ptr<const StatusChannels> MakeStatusChannels(const std::vector<std::string>& targets,
                                                         const Sender& sender) {
  const auto credentials = sender.Credentials({ServiceRole::kStatus, ServiceRole::kRelay});
  auto channels = std::make_shared<StatusChannels>();
  for (const std::string& target : targets) {
    channels->all.push_back(std::make_unique<RenewedChannel>(target, credentials));
  }
  return channels;
}

}  // namespace muster::client
