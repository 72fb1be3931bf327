// Where the target of a shared file is, as far as this relay knows.
#ifndef MUSTER_SERVICES_RELAY_FILES_TARGET_ROUTE_H_
#define MUSTER_SERVICES_RELAY_FILES_TARGET_ROUTE_H_

#include <string>

#include "services/relay/topology/topology.h"

namespace muster {

struct TargetRoute {
  enum class Kind {
    kLocal,        // it hangs, or hung last, below this relay itself
    kDownstream,   // it is reached by a relay below: `child`
    kUnreachable,  // it hung last below a relay that cannot be reached now
    kUnknown,      // this relay has not heard of it
  };
  Kind kind = Kind::kUnknown;
  std::string child;
  bool attached = false;
};

TargetRoute FindTargetRoute(const Topology& tree, const std::string& node);

// Whether `node` hangs, or hung last, below the direct child `relay`.
bool IsDownstreamOf(const Topology& tree, const std::string& relay, const std::string& node);

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_FILES_TARGET_ROUTE_H_
