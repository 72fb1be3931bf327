// What shared files are handled with.
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

// All of it outlives whoever has it.
struct ShareParts {
  ShareStore& store;
  const Topology& tree;
  const Clock& clock;
  std::string fleet;
  bool is_root = true;
  // The channel to the parent; null at the root, and without a parent now.
  std::function<std::shared_ptr<grpc::Channel>()> parent;
  // The channel to the aggregator; null elsewhere than at the root.
  std::function<std::shared_ptr<grpc::Channel>()> aggregator;
  // What signatures have to lead to.
  std::function<std::vector<Certificate>()> roots;
  // Whether a node was revoked.
  std::function<bool(const std::string& node)> is_revoked;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_FILES_SHARE_PARTS_H_
