// Where the target of a shared file is, as far as this relay knows.
#ifndef MUSTER_SERVICES_RELAY_FILES_SHARE_PLACE_H_
#define MUSTER_SERVICES_RELAY_FILES_SHARE_PLACE_H_

#include <string>

#include "services/relay/topology/tree.h"

namespace muster {

struct SharePlace {
  enum class Kind {
    kHere,     // it hangs, or hung last, below this relay itself
    kBelow,    // it is reached by a relay below: `child`
    kAway,     // it hung last below a relay that cannot be reached now
    kUnknown,  // this relay has not heard of it
  };
  Kind kind = Kind::kUnknown;
  std::string child;
  bool attached = false;
};

SharePlace PlaceOf(const Tree& tree, const std::string& node);

// Whether `node` hangs, or hung last, below the direct child `relay`.
bool IsBelow(const Tree& tree, const std::string& relay, const std::string& node);

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_FILES_SHARE_PLACE_H_
