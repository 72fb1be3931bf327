// The connections to the status service, which progress and heartbeats share.
#ifndef MUSTER_SERVICES_CLIENT_STATUS_CHANNELS_H_
#define MUSTER_SERVICES_CLIENT_STATUS_CHANNELS_H_

#include <memory>
#include <string>
#include <vector>

#include "services/client/sender.h"
#include "services/common/rpc/renewed_channel.h"

namespace muster::client {

// One for each target, in their order; they connect when needed.
struct StatusChannels {
  std::vector<std::unique_ptr<RenewedChannel>> all;
};

// `targets`: at least one. The servers must be a status service or a relay of the sender's fleet.
std::shared_ptr<const StatusChannels> MakeStatusChannels(const std::vector<std::string>& targets,
                                                         const Sender& sender);

}  // namespace muster::client

#endif  // MUSTER_SERVICES_CLIENT_STATUS_CHANNELS_H_
