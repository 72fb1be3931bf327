// The objects that the classes of shared files use.
#ifndef MUSTER_SERVICES_RELAY_FILES_SHARE_PARTS_H_
#define MUSTER_SERVICES_RELAY_FILES_SHARE_PARTS_H_

#include <grpcpp/channel.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "services/common/base/clock.h"
#include "services/common/identity/certificate.h"
#include "services/relay/files/share_store.h"
#include "services/relay/topology/topology.h"

namespace muster {

// All of it outlives the classes that use it.
struct ShareParts {
  ShareStore& store;
  const Topology& tree;
  const Clock& clock;
  std::string fleet;
  bool is_root = true;
  // The channel to the parent; null at the root relay and without a parent.
  std::function<std::shared_ptr<grpc::Channel>()> parent;
  // The channel to the aggregator; null at other relays than the root relay.
  std::function<std::shared_ptr<grpc::Channel>()> aggregator;
  // The roots of the certificates of signers.
  std::function<std::vector<Certificate>()> roots;
  // Returns whether a node was revoked.
  std::function<bool(const std::string& node)> is_revoked;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_FILES_SHARE_PARTS_H_
