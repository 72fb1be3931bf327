// The route to the target of a shared file, as this relay knows it.
#ifndef MUSTER_SERVICES_RELAY_FILES_TARGET_ROUTE_H_
#define MUSTER_SERVICES_RELAY_FILES_TARGET_ROUTE_H_

#include <string>

#include "services/relay/topology/topology_view.h"

namespace muster {

struct TargetRoute {
  enum class Kind {
    kLocal,        // it is, or was last, attached to this relay
    kDownstream,   // the next hop is the child relay `child`
    kUnreachable,  // its last parent is unreachable
    kUnknown,      // this relay does not know the node
  };
  Kind kind = Kind::kUnknown;
  std::string child;
  bool attached = false;
};

TargetRoute FindTargetRoute(const TopologyView& tree, const std::string& node);

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_FILES_TARGET_ROUTE_H_
